package probe

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/invar-ops/invar/internal/elffile"
	"github.com/invar-ops/invar/internal/install"
	"github.com/invar-ops/invar/internal/python"
	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/rootfs"
	"github.com/invar-ops/invar/internal/store"
)

// Where things are in the root that these tests look at.
const (
	rootPrefix = "/opt/invar"
	rootSite   = "/opt/venv/lib/python3.11/site-packages"
	rootPython = "/opt/venv/bin/python"
)

var (
	templateLock sync.Mutex
	template     string
)

// newRoot is a root file system of its own with both stages installed: this
// host's Python and C libraries, a torch that is there by its names, and what a
// build of the operators left in /opt/invar.
func newRoot(t testing.TB) string {
	t.Helper()
	b := makeBundle(t, "good")
	templateLock.Lock()
	defer templateLock.Unlock()
	if template == "" {
		dir := filepath.Join(scratch, "root")
		fillRoot(t, dir, b)
		template = dir
	}
	dir := filepath.Join(t.TempDir(), "root")
	if err := os.CopyFS(dir, os.DirFS(template)); err != nil {
		t.Fatal(err)
	}
	return dir
}

func fillRoot(t testing.TB, dir string, b bundle) {
	t.Helper()
	exe, err := filepath.EvalSymlinks("/usr/bin/python3")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range append(neededBy(t, exe), exe, "/lib/x86_64-linux-gnu/libstdc++.so.6", "/lib/x86_64-linux-gnu/libgcc_s.so.1", "/lib/x86_64-linux-gnu/libdl.so.2", "/lib/x86_64-linux-gnu/libpthread.so.0") {
		if _, err := os.Stat(path); err == nil {
			write(t, filepath.Join(dir, path), read(t, path))
		}
	}
	site := filepath.Join(dir, rootSite)
	write(t, filepath.Join(site, "torch", "__init__.py"), "")
	write(t, filepath.Join(site, "torch", "lib", "libtorch_cpu.so"), "")
	write(t, filepath.Join(site, "torch-2.15.0.dist-info", "METADATA"), "Name: torch\nVersion: 2.15.0\n")
	write(t, filepath.Join(dir, "opt/venv/pyvenv.cfg"), "home = /usr/bin\nversion = 3.11.2\n")
	write(t, filepath.Join(dir, "opt/venv/bin/activate"), "")
	link(t, exe, filepath.Join(dir, rootPython))
	link(t, "usr/bin", filepath.Join(dir, "bin"))
	prefix, err := install.Open(filepath.Join(dir, rootPrefix))
	if err != nil {
		t.Fatal(err)
	}
	r, err := prefix.Apply(t.Context(), install.Request{
		Bundle: install.Bundle{Target: "cpu", Flavour: "cpu", Fingerprint: "test", Contract: "invar-cpu-fp32/1"},
		Python: python.Python{
			Exe: filepath.Join(dir, rootPython), Version: "3.11.2", Prefix: filepath.Join(dir, "opt/venv"), Purelib: site, Paths: []string{site},
			Venv: true, Torch: python.Dist{Name: "torch", Version: "2.15.0", Dir: site},
		},
		Invar: "test",
	}, b.run, b.wheel)
	if err != nil {
		t.Fatal(err)
	}
	st, err := store.Open(prefix.Dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := st.Put(t.Context(), b.run); err != nil {
		t.Fatal(err)
	}
	// What was written below dir is now called as it is inside the root.
	for _, path := range []string{r.Hook.Path, filepath.Join(r.Dir(), "receipt.json"), filepath.Join(filepath.Dir(r.Current()), "state.json")} {
		write(t, path, strings.ReplaceAll(read(t, path), dir, ""))
	}
}

// neededBy lists the libraries of a program of this host.
func neededBy(t testing.TB, exe string) []string {
	t.Helper()
	f, err := elffile.Read(exe)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, l := range elffile.NewLoader("", "").Tree(f) {
		out = append(out, l.Path)
	}
	return out
}

func link(t testing.TB, to, at string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(to, at); err != nil {
		t.Fatal(err)
	}
}

// only is the one path that matches pattern in the root.
func only(t testing.TB, root, pattern string) string {
	t.Helper()
	hits, err := filepath.Glob(filepath.Join(root, pattern))
	if err != nil || len(hits) != 1 {
		t.Fatalf("%s: %v, %v", pattern, hits, err)
	}
	return hits[0]
}

const generation = "opt/invar/env/*/gen/1"

func probeRoot(t testing.TB, dir string, o Options) (Result, error) {
	t.Helper()
	var err error
	if o.Root, err = rootfs.Open(dir); err != nil {
		t.Fatal(err)
	}
	return Run(t.Context(), o) // without a Runner: a process would be a crash
}

func TestRoot(t *testing.T) {
	t.Parallel()
	dir := newRoot(t)
	res, err := probeRoot(t, dir, Options{})
	if err != nil {
		t.Fatalf("%v\n%+v", err, res.Checks)
	}
	want := map[int]report.Status{1: report.Pass, 2: report.Skip, 3: report.Skip, 4: report.Pass, 5: report.Pass, 6: report.Skip, 7: report.Skip}
	for _, l := range res.Levels {
		if l.Status != want[l.Level] || l.Status == report.Skip && !strings.Contains(l.Reason, "not run from outside") {
			t.Errorf("level %d: %s (%s), want %s", l.Level, l.Status, l.Reason, want[l.Level])
		}
	}
	if res.Proved != 1 || res.Prefix != rootPrefix || res.Python != rootPython || res.Root != dir {
		t.Errorf("proved %d, prefix %s, Python %s, root %s", res.Proved, res.Prefix, res.Python, res.Root)
	}
	for _, c := range res.Checks {
		if strings.Contains(c.Got+c.Want, dir) {
			t.Errorf("%s names this machine's path: %+v", c.Name, c)
		}
	}
	for require, code := range map[int]int{1: 0, 2: report.Inconclusive, 5: report.Inconclusive, 7: report.Inconclusive} {
		if _, err := probeRoot(t, dir, Options{Require: require}); report.ExitCode(err) != code {
			t.Errorf("--require %d: %v (exit code %d), want %d", require, err, report.ExitCode(err), code)
		}
	}
	valid(t, res, nil)
}

// valid checks what --json would print against its schema.
func valid(t testing.TB, res Result, err error) {
	t.Helper()
	s, serr := jsonschema.NewCompiler().Compile("../../docs/schema/invar.probe.schema.json")
	if serr != nil {
		t.Fatal(serr)
	}
	var b bytes.Buffer
	if err := report.WriteJSON(&b, "probe", res, err); err != nil {
		t.Fatal(err)
	}
	v, jerr := jsonschema.UnmarshalJSON(bytes.NewReader(b.Bytes()))
	if jerr != nil {
		t.Fatal(jerr)
	}
	if err := s.Validate(v); err != nil {
		t.Errorf("%v\n%s", err, b.String())
	}
}

// TestRootDamaged damages a root in every way that can be seen from outside.
func TestRootDamaged(t *testing.T) {
	t.Parallel()
	newRoot(t) // the template, before the others ask for it at once
	for _, c := range []struct {
		name, check, text string
		level             int
		status            report.Status
		damage            func(t *testing.T, dir string)
	}{
		{"changed library", "receipt", "changed", Files, report.Fail, func(t *testing.T, dir string) {
			flip(t, only(t, dir, generation+"/ops/cpu/lib/libinvar_cpu.so"))
		}},
		{"missing file", "receipt", "_loader.py: missing", Files, report.Fail, func(t *testing.T, dir string) {
			remove(t, only(t, dir, generation+"/site/batch_invariant_ops/_loader.py"))
		}},
		{"pipe in place of a file", "receipt", "a pipe", Files, report.Fail, func(t *testing.T, dir string) {
			path := only(t, dir, generation+"/site/batch_invariant_ops/_loader.py")
			remove(t, path)
			if err := syscall.Mkfifo(path, 0o644); err != nil {
				t.Fatal(err)
			}
		}},
		// The link's end has the right content on this machine, and is not there in the root.
		{"link out of the root", "receipt", "changed", Files, report.Fail, func(t *testing.T, dir string) {
			path := only(t, dir, generation+"/site/batch_invariant_ops/_loader.py")
			out := filepath.Join(t.TempDir(), "_loader.py")
			write(t, out, read(t, path))
			remove(t, path)
			link(t, out, path)
		}},
		{"no hook", "hook", "no file", Files, report.Fail, func(t *testing.T, dir string) {
			remove(t, filepath.Join(dir, rootSite, install.HookName))
		}},
		{"hook of another prefix", "hook", "/srv/invar", Files, report.Fail, func(t *testing.T, dir string) {
			write(t, filepath.Join(dir, rootSite, install.HookName), "/srv/invar/env/0123456789ab/current/site\n")
		}},
		{"another copy first", "first on the path", "shadowed", Files, report.Fail, func(t *testing.T, dir string) {
			write(t, filepath.Join(dir, rootSite, "batch_invariant_ops/__init__.py"), "")
		}},
		{"C library is only on this machine", "library libinvar_cpu.so", "libc.so.6, which", Files, report.Fail, func(t *testing.T, dir string) {
			remove(t, only(t, dir, "lib/*/libc.so.6"))
		}},
		{"library for another CPU", "library libinvar_cpu.so", "is for aarch64", Files, report.Fail, func(t *testing.T, dir string) {
			path := only(t, dir, generation+"/ops/cpu/lib/libinvar_cpu.so")
			b := []byte(read(t, path))
			binary.LittleEndian.PutUint16(b[18:], 183) // e_machine EM_AARCH64
			write(t, path, string(b))
		}},
		{"base Python missing", "interpreter", "which is not there", Files, report.Fail, func(t *testing.T, dir string) {
			remove(t, only(t, dir, "usr/bin/python3.*"))
		}},
		{"environment missing", "interpreter", "no such file", Files, report.Fail, func(t *testing.T, dir string) {
			remove(t, filepath.Join(dir, rootPython))
		}},
		{"no torch", "torch", "no torch in", Files, report.Fail, func(t *testing.T, dir string) {
			if err := os.RemoveAll(filepath.Join(dir, rootSite, "torch")); err != nil {
				t.Fatal(err)
			}
		}},
		{"torch too old", "torch", "2.9.1", Files, report.Fail, func(t *testing.T, dir string) {
			if err := os.Rename(filepath.Join(dir, rootSite, "torch-2.15.0.dist-info"), filepath.Join(dir, rootSite, "torch-2.9.1.dist-info")); err != nil {
				t.Fatal(err)
			}
		}},
		{"store damaged", "manifest of the run package", "sha256", Kernels, report.Fail, func(t *testing.T, dir string) {
			flip(t, runPackage(t, dir))
		}},
		{"package not in the store", "manifest of the run package", "not in the store", Kernels, report.Skip, func(t *testing.T, dir string) {
			remove(t, runPackage(t, dir))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := newRoot(t)
			c.damage(t, dir)
			res, err := probeRoot(t, dir, Options{})
			code := map[report.Status]int{report.Fail: report.CheckFailed, report.Skip: 0}[c.status]
			if report.ExitCode(err) != code {
				t.Errorf("exit code %d (%v), want %d", report.ExitCode(err), err, code)
			}
			found(t, res, c.level, c.check, c.status, c.text)
		})
	}
}

func runPackage(t testing.TB, dir string) string {
	t.Helper()
	var r install.Receipt
	if err := json.Unmarshal([]byte(read(t, only(t, dir, generation+"/receipt.json"))), &r); err != nil {
		t.Fatal(err)
	}
	return store.At(filepath.Join(dir, rootPrefix)).Path(r.RunPackage.SHA256)
}

// found wants a check of this name with this outcome that says text.
func found(t testing.TB, res Result, level int, name string, status report.Status, text string) {
	t.Helper()
	i := slices.IndexFunc(res.Checks, func(c report.Check) bool { return c.Level == level && c.Name == name })
	if i < 0 {
		t.Fatalf("no check %q at level %d: %+v", name, level, res.Checks)
	}
	if c := res.Checks[i]; c.Status != status || !strings.Contains(c.Got+c.Reason, text) {
		t.Errorf("%s: %s, got %q %q, want %s with %q", name, c.Status, c.Got, c.Reason, status, text)
	} else if status == report.Fail && (c.Want == "" || c.Hint == "") {
		t.Errorf("%s says no want or no hint: %+v", name, c)
	}
}

// TestRootWiring makes receipts agree with damaged stages, so that level 4 has
// to find what does not fit.
func TestRootWiring(t *testing.T) {
	t.Parallel()
	newRoot(t)
	for _, c := range []struct {
		name, check, text string
		env               []string
		stage1            string // source of another one
	}{
		{"override", "stage 1 in use", "named by INVAR_CPU_LIBRARY", []string{"INVAR_CPU_LIBRARY=/elsewhere.so"}, ""},
		{"hollow", "functions of stage 1", "without invar_cpu_", nil, `const char *invar_cpu_contract(void) { return "invar-cpu-fp32/1"; }`},
		{"other contract", "contract of stage 1", "invar-cpu-fp32/2 in stage 1", nil, `const char *invar_cpu_contract(void) { return "invar-cpu-fp32/2"; }`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := newRoot(t)
			if c.stage1 != "" {
				src := t.TempDir()
				write(t, filepath.Join(src, "s.c"), c.stage1)
				lib := only(t, dir, generation+"/ops/cpu/lib/libinvar_cpu.so")
				compile(t, src, "-x", "c", "-shared", "-fPIC", "-o", lib, "s.c")
				resealRoot(t, dir)
			}
			res, err := probeRoot(t, dir, Options{Env: c.env})
			if report.ExitCode(err) != report.CheckFailed {
				t.Errorf("%v", err)
			}
			found(t, res, Wiring, c.check, report.Fail, c.text)
		})
	}
}

// resealRoot makes the receipt agree with the files as they are now.
func resealRoot(t testing.TB, dir string) {
	t.Helper()
	gen := only(t, dir, generation)
	var r install.Receipt
	if err := json.Unmarshal([]byte(read(t, filepath.Join(gen, "receipt.json"))), &r); err != nil {
		t.Fatal(err)
	}
	for n := range r.Files {
		f := &r.Files[n]
		var err error
		if f.SHA256, f.Size, err = store.Digest(t.Context(), filepath.Join(gen, f.Path)); err != nil {
			t.Fatal(err)
		}
	}
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(gen, "receipt.json"), string(b))
}

// TestFindPrefix finds a prefix wherever it lies and does not guess among several.
func TestFindPrefix(t *testing.T) {
	t.Parallel()
	dir := newRoot(t)
	move := func(from, to string) {
		for _, path := range []string{filepath.Join(dir, rootSite, install.HookName), only(t, dir, from+"/env/*/gen/1/receipt.json")} {
			write(t, path, strings.ReplaceAll(read(t, path), "/"+from, "/"+to))
		}
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, to)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(dir, from), filepath.Join(dir, to)); err != nil {
			t.Fatal(err)
		}
	}
	move("opt/invar", "home/me/.local/share/invar")
	res, err := probeRoot(t, dir, Options{})
	if err != nil || res.Prefix != "/home/me/.local/share/invar" {
		t.Fatalf("prefix %s, %v", res.Prefix, err)
	}
	if err := os.CopyFS(filepath.Join(dir, "srv/invar"), os.DirFS(filepath.Join(dir, "home/me/.local/share/invar"))); err != nil {
		t.Fatal(err)
	}
	if _, err = probeRoot(t, dir, Options{}); report.ExitCode(err) != report.Usage || !strings.Contains(err.Error(), "/home/me/.local/share/invar, /srv/invar") {
		t.Errorf("two prefixes: %v", err)
	}
	if res, err = probeRoot(t, dir, Options{Env: []string{"INVAR_HOME=/home/me/.local/share/invar"}}); err != nil || res.Prefix != "/home/me/.local/share/invar" {
		t.Errorf("INVAR_HOME: %s, %v", res.Prefix, err)
	}
	if _, err = probeRoot(t, dir, Options{Python: "/usr/bin/python3.12", Prefix: "/home/me/.local/share/invar"}); report.ExitCode(err) != report.CheckFailed || !strings.Contains(err.Error(), "nothing is installed for /usr/bin/python3.12") {
		t.Errorf("another Python: %v", err)
	}
	if _, err = probeRoot(t, dir, Options{Prefix: "/srv/invar"}); report.ExitCode(err) != report.CheckFailed || !strings.Contains(err.Error(), "the prefix was moved") {
		t.Errorf("a copy elsewhere: %v", err)
	}
	for _, d := range []string{"home", "srv"} {
		if err := os.RemoveAll(filepath.Join(dir, d)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err = probeRoot(t, dir, Options{}); report.ExitCode(err) != report.CheckFailed || !strings.Contains(err.Error(), rootSite+"/invar.pth without the prefix") {
		t.Errorf("no prefix: %v", err)
	}
}
