package invar

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/run"
)

// layOut writes a virtual environment as uv and venv lay it out; with torch
// it holds the metadata of that version.
func layOut(t *testing.T, dir, torch string) {
	t.Helper()
	site := filepath.Join(dir, "lib", "python3.11", "site-packages")
	files := map[string]string{
		filepath.Join(dir, "pyvenv.cfg"):    "home = /usr/bin\nversion = 3.11.7\n",
		filepath.Join(dir, "bin", "python"): "",
		filepath.Join(site, "x.py"):         "",
	}
	if torch != "" {
		files[filepath.Join(site, "torch-"+torch+".dist-info", "METADATA")] = "Name: torch\nVersion: " + torch + "\n"
		files[filepath.Join(site, "torch", "__init__.py")] = ""
		files[filepath.Join(dir, ".invar-ready")] = ""
	}
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

// TestNamedPythonWithoutTorch: the environment is made from the Python that
// was named, and made once: a second plan takes it as it is.
func TestNamedPythonWithoutTorch(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"--python", "VIRTUAL_ENV"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			named := filepath.Join(t.TempDir(), "named env")
			layOut(t, named, "")
			s := Session{Prefix: filepath.Join(t.TempDir(), "home"), Env: os.Environ(), Runner: run.System{}, Version: "1.0.0", Progress: report.Discard}
			o := Options{Target: "cpu"}
			if how == "--python" {
				o.Python = named
			} else {
				s.Env = append(s.Env, "VIRTUAL_ENV="+named)
			}
			p, err := s.Plan(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			if p.Recipe == nil || p.Recipe.Base.Exe != filepath.Join(named, "bin", "python") {
				t.Fatalf("recipe %+v, want one made from %s", p.Recipe, named)
			}
			if got := p.Recipe.Reason(); !strings.Contains(got, named) || !strings.Contains(got, how) {
				t.Errorf("reason %q, want %s and %s in it", got, named, how)
			}
			layOut(t, p.Recipe.Dir, "2.15.0")
			again, err := s.Plan(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			if again.Recipe != nil || again.Python.Exe != filepath.Join(p.Recipe.Dir, "bin", "python") {
				t.Errorf("second plan: recipe %+v, python %s; want the environment in %s as it is", again.Recipe, again.Python.Exe, p.Recipe.Dir)
			}
			if !strings.Contains(again.Python.Why, named) {
				t.Errorf("second plan: why %q, want %s named", again.Python.Why, named)
			}
		})
	}
}
