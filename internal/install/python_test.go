package install

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/invar-ops/invar/internal/python"
)

// realPython makes a virtual environment without pip: what this package does
// must hold for a real interpreter.
func realPython(t testing.TB) python.Python {
	t.Helper()
	exe, err := exec.LookPath("python3")
	if err != nil {
		if os.Getenv("INVAR_CI") == "1" {
			t.Fatal("no python3 on PATH")
		}
		t.Skip("no python3 on PATH")
	}
	dir := filepath.Join(t.TempDir(), "venv")
	if out, err := exec.CommandContext(t.Context(), exe, "-m", "venv", "--without-pip", dir).CombinedOutput(); err != nil {
		t.Fatalf("venv: %v\n%s", err, out)
	}
	py, ok := python.Inspect(filepath.Join(dir, "bin", "python"))
	if !ok {
		t.Fatalf("%s is not recognised", dir)
	}
	return py
}

// ask runs code in py and returns what it prints.
func ask(t testing.TB, py python.Python, environ []string, code string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), py.Exe, "-B", "-c", code)
	cmd.Dir = t.TempDir() // -c puts the working folder first on sys.path
	cmd.Env = append(environ, "PATH="+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("python: %v\n%s", err, out)
	}
	return strings.TrimSpace(string(out))
}

func TestPythonSeesTheGeneration(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a, b := makeBundle(t, dir, "a", 10), makeBundle(t, dir, "b", 10)
	p, py := openPrefix(t), realPython(t)
	const code = `
import importlib.metadata as m
try:
    import batch_invariant_ops as b
    print(b.MARK, b.__file__, m.version("batch-invariant-ops"))
except ImportError as e:
    print("none", e)
`
	r := apply(t, p, request(py), a)
	want := filepath.Join(r.Site(), Package, "__init__.py")
	if got := ask(t, py, nil, code); got != "a "+want+" 1.0.0+a" {
		t.Errorf("got %q, want a from %s", got, want)
	}
	apply(t, p, request(py), b)
	if got := ask(t, py, nil, code); got != "b "+want+" 1.0.0+b" {
		t.Errorf("got %q, want b from %s", got, want)
	}
	if _, err := p.Rollback(t.Context(), py.ID()); err != nil {
		t.Fatal(err)
	}
	if got := ask(t, py, nil, code); !strings.HasPrefix(got, "a ") {
		t.Errorf("after rollback: got %q, want a", got)
	}
	if _, err := p.Uninstall(t.Context(), UninstallOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := ask(t, py, nil, code); !strings.HasPrefix(got, "none") {
		t.Errorf("after uninstall: got %q, want none", got)
	}
}

// TestPythonAgreesOnWhoWins puts each kind of foreign copy beside an
// installation and asks Python which one it would import. Where we refuse
// because of a copy that can be imported, Python has to pick that copy.
func TestPythonAgreesOnWhoWins(t *testing.T) {
	t.Parallel()
	b := makeBundle(t, t.TempDir(), "a", 10)
	for _, tc := range foreignCases {
		if tc.fake {
			continue
		}
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			p, py, src := openPrefix(t), realPython(t), t.TempDir()
			r := apply(t, p, request(py), b)
			put(t, src, map[string]string{Package + "/__init__.py": "x = 1\n"})
			for name, text := range tc.site {
				if rest, ok := strings.CutPrefix(name, "@/"); ok {
					put(t, src, map[string]string{rest: text})
				} else {
					put(t, py.Purelib, map[string]string{name: strings.ReplaceAll(text, "@src", src)})
				}
			}
			environ := []string{"PYTHONPATH=" + strings.ReplaceAll(tc.env, "@src", src)}
			got := ask(t, py, environ, "import importlib.util as u; print(u.find_spec('batch_invariant_ops').origin)")
			if ours := strings.HasPrefix(got, r.Site()); ours == tc.refuse {
				t.Errorf("Python would import %s; refused: %v", got, tc.refuse)
			}
			h, err := Check(t.Context(), r, environ)
			if err != nil || h.OK == tc.refuse {
				t.Errorf("check says %+v, %v; refused: %v", h, err, tc.refuse)
			}
		})
	}
}
