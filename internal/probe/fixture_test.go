package probe

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/invar-ops/invar/internal/install"
	"github.com/invar-ops/invar/internal/python"
	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/run"
	"github.com/invar-ops/invar/internal/store"
	"github.com/invar-ops/invar/internal/target"
	"github.com/invar-ops/invar/internal/testkit"
)

// The shared environments with torch: the newest one and the floor.
const (
	latest = testkit.Latest
	floor  = testkit.Floor
)

// privatePython is an environment of the test's own that sees torch, so that
// hooks of tests do not meet.
func privatePython(t testing.TB, name string) python.Python {
	t.Helper()
	shared := testkit.Need(t, name)
	dir := t.TempDir()
	minor := strings.Join(strings.Split(shared.Version, ".")[:2], ".")
	site := filepath.Join(dir, "lib", "python"+minor, "site-packages")
	exe := filepath.Join(dir, "bin", "python")
	cfg := read(t, filepath.Join(shared.Prefix, "pyvenv.cfg"))
	base, err := filepath.EvalSymlinks(shared.Exe)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "pyvenv.cfg"), cfg)
	// After invar.pth by name, as site-packages would come before it.
	write(t, filepath.Join(site, "torch-here.pth"), shared.Purelib+"\n")
	write(t, exe, "")
	if err := os.Remove(exe); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(base, exe); err != nil {
		t.Fatal(err)
	}
	return python.Python{
		Exe: exe, Version: shared.Version, Prefix: dir, Purelib: site, Venv: true,
		Paths: []string{site, shared.Purelib}, Torch: shared.Torch,
	}
}

// heavy leaves a test out of short runs, such as those under the race detector:
// what it adds there is compilers and Python, not Go.
func heavy(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("compiles variants or sweeps for many seconds: not with -short")
	}
}

// A fixture is one installation in a prefix and a Python of its own.
type fixture struct {
	prefix  string
	py      python.Python
	receipt install.Receipt
}

// setUp installs b; nothing else has this prefix or this Python.
func setUp(t testing.TB, b bundle) *fixture {
	t.Helper()
	return setUpIn(t, privatePython(t, latest), b)
}

func setUpIn(t testing.TB, py python.Python, b bundle) *fixture {
	t.Helper()
	prefix, err := install.Open(filepath.Join(t.TempDir(), "home"))
	if err != nil {
		t.Fatal(err)
	}
	r, err := prefix.Apply(t.Context(), install.Request{
		Bundle: install.Bundle{Target: "cpu", Flavour: "cpu", Fingerprint: "test", Contract: "invar-cpu-fp32/1"},
		Python: py, Env: os.Environ(), Invar: "test",
	}, b.run, b.wheel)
	if err != nil {
		t.Fatal(err)
	}
	// A build leaves both artifacts in the store.
	st, err := store.Open(prefix.Dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := st.Put(t.Context(), b.run); err != nil {
		t.Fatal(err)
	}
	return &fixture{prefix.Dir, py, r}
}

// target is what the receipt says that was built.
func (i *fixture) target(t testing.TB) target.Target {
	t.Helper()
	found, err := target.Find(i.receipt.Target)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// levels are the ISA levels of this architecture.
func (i *fixture) levels(t testing.TB) []string { return i.target(t).Stage1.Levels(arch()) }

// path is a file of the generation.
func (i *fixture) path(elem ...string) string {
	return filepath.Join(append([]string{i.receipt.Dir()}, elem...)...)
}

// reseal makes the receipt agree with the files as they are now, so that a
// deeper level meets the damage. RECORD is made to agree as well.
func (i *fixture) reseal(t testing.TB) {
	t.Helper()
	r := i.receipt
	r.Files = slices.DeleteFunc(slices.Clone(r.Files), func(f install.File) bool { return !exists(i.path(f.Path)) })
	record := ""
	var lines []string
	for n := range r.Files {
		f := &r.Files[n]
		if strings.HasSuffix(f.Path, ".dist-info/RECORD") {
			record = f.Path
			lines = append(lines, strings.TrimPrefix(f.Path, "site/")+",,")
			continue
		}
		sum, size, err := store.Digest(t.Context(), i.path(f.Path))
		if err != nil {
			t.Fatal(err)
		}
		f.SHA256, f.Size = sum, size
		if rel, ok := strings.CutPrefix(f.Path, "site/"); ok {
			raw, err := hex.DecodeString(sum)
			if err != nil {
				t.Fatal(err)
			}
			lines = append(lines, fmt.Sprintf("%s,sha256=%s,%d", rel, base64.RawURLEncoding.EncodeToString(raw), size))
		}
	}
	write(t, i.path(record), strings.Join(lines, "\n")+"\n")
	for n := range r.Files {
		if r.Files[n].Path == record {
			r.Files[n].SHA256, r.Files[n].Size, _ = store.Digest(t.Context(), i.path(record))
		}
	}
	i.save(t, r)
}

// save writes r as the receipt.
func (i *fixture) save(t testing.TB, r install.Receipt) {
	t.Helper()
	b, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	write(t, i.path("receipt.json"), string(b))
	i.receipt = r
}

// probe runs levels 1 to level with extra environment.
func (i *fixture) probe(t testing.TB, level int, env ...string) (Result, error) {
	t.Helper()
	return Run(t.Context(), Options{
		Prefix: i.prefix, Python: i.py.Exe, Level: level, Runner: run.System{}, Env: append(cleanEnv(), env...),
	})
}

// cleanEnv is the environment without what changes the outcome.
func cleanEnv() []string {
	return run.Unsetenv(os.Environ(), "PYTHONPATH", "INVAR_CPU_LIBRARY", "INVAR_CPU_ISA", "VIRTUAL_ENV", "INVAR_HOME")
}

func problemText(err error) string {
	if p, ok := errors.AsType[*report.Problem](err); ok {
		return err.Error() + "\n" + p.Tail
	}
	return err.Error()
}

// want checks that level is the first that did not pass, in this way, with a
// check of this name that says text; deeper levels that need it are skipped.
func want(t *testing.T, res Result, err error, level int, status report.Status, name, text string) {
	t.Helper()
	code := map[report.Status]int{report.Fail: report.CheckFailed, report.Unclear: report.Inconclusive}[status]
	if got := report.ExitCode(err); got != code {
		t.Errorf("exit code %d (%v), want %d", got, err, code)
	}
	for _, l := range res.Levels {
		if l.Level == level && l.Status != status {
			t.Errorf("level %d: %s (%s), want %s", l.Level, l.Status, l.Reason, status)
		}
		if l.Level < level && l.Status != report.Pass {
			t.Errorf("level %d: %s (%s), want pass", l.Level, l.Status, l.Reason)
		}
	}
	found := false
	for _, c := range res.Checks {
		if c.Level != level || c.Name != name {
			continue
		}
		found = true
		all := c.Got + c.Reason
		if c.Status != status || !strings.Contains(all, text) {
			t.Errorf("check %q: %s, got %q, want %s with %q", name, c.Status, all, status, text)
		}
		if status == report.Fail && (c.Want == "" || c.Got == "") {
			t.Errorf("check %q says no want or got: %+v", name, c)
		}
	}
	if !found {
		t.Errorf("no check %q at level %d: %+v", name, level, res.Checks)
	}
	if res.Proved != level-1 {
		t.Errorf("proved %d, want %d", res.Proved, level-1)
	}
}

func read(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
