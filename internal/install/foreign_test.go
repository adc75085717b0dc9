package install

import (
	"archive/zip"
	"bytes"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/invar-ops/invar/internal/report"
)

// put writes files below dir; a name that ends in / makes a folder.
func put(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if strings.HasSuffix(name, "/") {
			if err := os.MkdirAll(path, 0o755); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

const meta = "batch_invariant_ops-0.9.dist-info/METADATA"

// foreignCases are ways in which a copy comes onto the path. @src stands for a
// folder outside site-packages that holds a package.
var foreignCases = []struct {
	name   string
	site   map[string]string // files in site-packages
	env    string            // PYTHONPATH
	refuse bool              // Begin refuses without Replace
	stuck  bool              // ... and with it
	fake   bool              // nothing that a Python could import: it is not asked
}{
	{name: "nothing", site: map[string]string{"torch/__init__.py": ""}},
	{name: "pip", site: map[string]string{Package + "/__init__.py": "", meta: "", "batch_invariant_ops-0.9.dist-info/INSTALLER": "pip\n", "batch_invariant_ops.libs/x.so": ""}, refuse: true},
	{name: "package without metadata", site: map[string]string{Package + "/__init__.py": ""}, refuse: true},
	{name: "compiled package", site: map[string]string{Package + "/__init__.cpython-311-x86_64-linux-gnu.so": ""}, refuse: true},
	{name: "module", site: map[string]string{Package + ".py": ""}, refuse: true},
	{name: "extension module", site: map[string]string{Package + ".abi3.so": ""}, refuse: true},
	{name: "metadata only", site: map[string]string{meta: ""}, refuse: true, fake: true},
	{name: "other spelling of the metadata", site: map[string]string{"Batch.Invariant_Ops-0.9.dist-info/METADATA": ""}, refuse: true, fake: true},
	{name: "egg-info file", site: map[string]string{"batch_invariant_ops-0.9-py3.11.egg-info": ""}, refuse: true, fake: true},
	{name: "namespace folder", site: map[string]string{Package + "/data.txt": ""}},
	{name: "stub package only", site: map[string]string{Package + "/__init__.pyi": ""}},
	{name: "like-named packages", site: map[string]string{Package + "_extra/__init__.py": "", "batch_invariant_ops_extra-1.0.dist-info/METADATA": ""}},
	{name: "pth names a folder", site: map[string]string{"a.pth": "# c\n@src\n"}, refuse: true},
	{name: "relative pth", site: map[string]string{"a.pth": "sub\n", "sub/" + Package + "/__init__.py": ""}, refuse: true},
	{name: "pth that sorts after the hook", site: map[string]string{"z.pth": "@src\n"}},
	{name: "pth with CRLF", site: map[string]string{"a.pth": "@src\r\n"}, refuse: true},
	{name: "pth that names two folders", site: map[string]string{"easy-install.pth": "/elsewhere\n@src\n"}, refuse: true, stuck: true},
	{name: "setuptools finder", site: map[string]string{
		"__editable__.batch_invariant_ops-1.0.pth":       "import __editable___batch_invariant_ops_1_0_finder; __editable___batch_invariant_ops_1_0_finder.install()",
		"__editable___batch_invariant_ops_1_0_finder.py": "MAPPING: dict = {'batch_invariant_ops': '/src/batch_invariant_ops'}\n",
		meta: "",
	}, refuse: true, fake: true},
	{name: "finder of another project", site: map[string]string{
		"__editable__.my_1_0.pth":       "import __editable___my_1_0_finder; __editable___my_1_0_finder.install()",
		"__editable___my_1_0_finder.py": "MAPPING = {'batch_invariant_ops': '/src/bio', 'my': '/src/my'}\n",
	}, refuse: true, fake: true},
	{name: "finder without it", site: map[string]string{
		"__editable__.my_1_0.pth":       "import __editable___my_1_0_finder",
		"__editable___my_1_0_finder.py": "MAPPING = {'my': '/src/my'} # batch_invariant_ops\n",
	}},
	{name: "PYTHONPATH", env: "/nowhere:@src", refuse: true},
	{name: "PYTHONPATH names a source tree", site: map[string]string{"@/pyproject.toml": ""}, env: "@src", refuse: true, stuck: true},
	{name: "PYTHONPATH names it among others", site: map[string]string{"@/setup.py": ""}, env: "/no where:@src:/else", refuse: true, stuck: true},
	{name: "PYTHONPATH without it", env: "/nowhere:"},
	{name: "zip on PYTHONPATH", site: map[string]string{"@/b.zip": zipped(Package + "/__init__.py")}, env: "@src/b.zip", refuse: true, stuck: true},
	{name: "zip in a pth of its own", site: map[string]string{"a.pth": "b.zip\n", "b.zip": zipped(Package + ".py")}, refuse: true},
	{name: "zip in a shared pth", site: map[string]string{"a.pth": "# c\n/elsewhere\nb.zip\n", "b.zip": zipped(Package + "/__init__.py")}, refuse: true, stuck: true},
	{name: "zip of others", site: map[string]string{"a.pth": "b.zip\n", "b.zip": zipped("other/__init__.py")}},
}

// zipped is a zip file with one empty file in it.
func zipped(name string) string {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	_, err := z.Create(name)
	if err := errors.Join(err, z.Close()); err != nil {
		panic(err)
	}
	return b.String()
}

// foreignWorld makes the Python of a case and the folder @src.
func foreignWorld(t testing.TB, site map[string]string, env string) (req Request, src string) {
	t.Helper()
	py, src := fakePython(t), t.TempDir()
	put(t, src, map[string]string{Package + "/__init__.py": "x = 1\n"})
	for name, text := range site {
		if rest, ok := strings.CutPrefix(name, "@/"); ok {
			put(t, src, map[string]string{rest: text})
			continue
		}
		put(t, py.Purelib, map[string]string{name: strings.ReplaceAll(text, "@src", src)})
	}
	req = request(py)
	req.Env = []string{"PYTHONPATH=" + strings.ReplaceAll(env, "@src", src)}
	return req, src
}

func TestForeignCopies(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := makeBundle(t, dir, "a", 10)
	for _, tc := range foreignCases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			p := openPrefix(t)
			req, src := foreignWorld(t, tc.site, tc.env)
			before := tree(t, req.Python.Purelib)
			srcBefore := tree(t, src)
			_, err := p.Apply(t.Context(), req, b.run, b.wheel)
			if !tc.refuse {
				if err != nil {
					t.Fatalf("got %v, want no refusal", err)
				}
				return
			}
			refused(t, err)
			if after := tree(t, req.Python.Purelib); !maps.Equal(before, after) || exists(p.Dir) {
				t.Errorf("the refusal changed something")
			}
			req.Replace = true
			r, err := p.Apply(t.Context(), req, b.run, b.wheel)
			if tc.stuck {
				refused(t, err)
				obey(t, &req, err)
				r, err = p.Apply(t.Context(), req, b.run, b.wheel)
				if err != nil {
					t.Fatalf("after what the hint says: %v", err)
				}
				healthyIn(t, r, req.Env)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			healthyIn(t, r, req.Env)
			removed, err := p.Uninstall(t.Context(), UninstallOptions{})
			if err != nil || len(removed.Left) > 0 || len(removed.Restored) == 0 || !removed.Prefix {
				t.Errorf("uninstall: %+v, %v", removed, err)
			}
			if after := tree(t, req.Python.Purelib); !maps.Equal(before, after) {
				t.Errorf("not brought back: got %v, want %v", after, before)
			}
			if after := tree(t, src); !maps.Equal(srcBefore, after) {
				t.Errorf("not brought back: got %v, want %v", after, srcBefore)
			}
		})
	}
}

// obey does what the hint of a copy that stays says: a command behind the last
// colon, run by the user's shell.
func obey(t *testing.T, req *Request, err error) {
	t.Helper()
	p, ok := errors.AsType[*report.Problem](err)
	if !ok {
		t.Fatalf("got %v, want one problem", err)
	}
	at := strings.LastIndex(p.Hint, ": ")
	cmd := exec.CommandContext(t.Context(), "sh", "-ec", p.Hint[at+2:]+"\nprintf %s \"${PYTHONPATH-}\"")
	cmd.Env = append(req.Env, "PATH=/usr/bin:/bin")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("hint %q: %v\n%s", p.Hint, err, out)
	}
	req.Env = []string{"PYTHONPATH=" + string(out)}
}

// refused asks for exit code 3 and a text that says what to do.
func refused(t testing.TB, err error) {
	t.Helper()
	if report.ExitCode(err) != report.Unmet {
		t.Fatalf("got exit code %d (%v), want 3", report.ExitCode(err), err)
	}
	if p, ok := errors.AsType[*report.Problem](err); ok && (p.Hint == "" || p.Got == "" || p.Want == "") {
		t.Errorf("%+v: want a hint, what was found and what was expected", p)
	}
}

func healthyIn(t testing.TB, r Receipt, environ []string) {
	t.Helper()
	h, err := Check(t.Context(), r, environ)
	if err != nil || !h.OK {
		t.Fatalf("%+v, %v", h, err)
	}
}

func TestRollbackBringsBackWhatWasReplaced(t *testing.T) {
	t.Parallel()
	p, dir := openPrefix(t), t.TempDir()
	a, b := makeBundle(t, dir, "a", 10), makeBundle(t, dir, "b", 10)
	req, _ := foreignWorld(t, nil, "")
	first := apply(t, p, req, a)
	put(t, req.Python.Purelib, map[string]string{Package + "/__init__.py": "pip", meta: ""})
	before := tree(t, req.Python.Purelib)
	h, err := Check(t.Context(), first, nil)
	if err != nil || h.OK || h.Faults[0].Kind != "shadowed" {
		t.Errorf("got %+v, %v, want shadowed", h, err)
	}
	_, err = p.Apply(t.Context(), req, b.run, b.wheel)
	refused(t, err)
	req.Replace = true
	apply(t, p, req, b)
	req.Replace = false
	third := apply(t, p, req, a) // what was moved aside stays so
	if len(third.Replaced) != 0 {
		t.Errorf("generation 3 replaced %+v, want nothing", third.Replaced)
	}
	for want := 2; want >= 1; want-- {
		back, err := p.Rollback(t.Context(), req.Python.ID())
		if err != nil || back.To != want {
			t.Fatalf("rollback %+v, %v, want to %d", back, err, want)
		}
		if (want == 1) != (len(back.Restored) == 2) {
			t.Errorf("rollback to %d restored %+v", want, back.Restored)
		}
	}
	if after := tree(t, req.Python.Purelib); !maps.Equal(before, after) {
		t.Errorf("got %v, want %v", after, before)
	}
}
