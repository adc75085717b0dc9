package probe

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/invar-ops/invar/internal/build"
	"github.com/invar-ops/invar/internal/install"
	"github.com/invar-ops/invar/internal/plan"
	"github.com/invar-ops/invar/internal/python"
	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/run"
	"github.com/invar-ops/invar/internal/store"
	"github.com/invar-ops/invar/internal/target"
	"github.com/invar-ops/invar/internal/toolchain"
	"github.com/invar-ops/invar/targets"
)

// scratch is shared by all tests of the process: the store in it keeps every
// object, so that a variant of one kernel costs one compile.
var scratch string

func TestMain(m *testing.M) {
	var err error
	if scratch, err = os.MkdirTemp("", "invar-probe-test-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(scratch)
	os.Exit(code)
}

// Environments with torch that .ci makes: the newest one and the floor.
const (
	latest = "torch-2.15"
	floor  = "torch-2.10"
)

// torchVenv is one of the shared environments.
func torchVenv(t testing.TB, name string) python.Python {
	t.Helper()
	cache := os.Getenv("INVAR_CI_CACHE")
	if cache == "" {
		cache = filepath.Join(os.Getenv("HOME"), ".cache", "invar-ci")
	}
	dir := filepath.Join(cache, name)
	py, ok := python.Inspect(filepath.Join(dir, "bin", "python"))
	if !exists(filepath.Join(dir, ".ready")) || !ok || !py.HasTorch() {
		text := "needs torch: an environment with " + name + " and numpy in " + dir + " (.ci makes it)"
		if os.Getenv("INVAR_CI") == "1" {
			t.Fatal(text)
		}
		t.Skip(text)
	}
	return py
}

// privatePython is an environment of the test's own that sees torch, so that
// hooks of tests do not meet.
func privatePython(t testing.TB, name string) python.Python {
	t.Helper()
	shared := torchVenv(t, name)
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

// A bundle is both artifacts of one build.
type bundle struct{ run, wheel string }

var (
	bundleLock sync.Mutex
	bundles    = map[string]bundle{}
)

// A patch replaces text that occurs once in a source below targets/.
type patch struct{ path, old, new string }

// makeBundle builds both stages with the real compilers, with patches in the sources.
func makeBundle(t testing.TB, name string, patches ...patch) bundle {
	t.Helper()
	py := torchVenv(t, latest)
	bundleLock.Lock()
	defer bundleLock.Unlock()
	if b, ok := bundles[name]; ok {
		return b
	}
	cpu, err := target.Find("cpu")
	if err != nil {
		t.Fatal(err)
	}
	compiler, reasons := toolchain.Find(t.Context(), os.Environ(), run.System{}, filepath.Join(scratch, "compilers.json"))
	facts := plan.Facts{Arch: arch(), Python: py, Compiler: compiler, CompilerReasons: reasons, Packages: map[string]string{}, Sources: digests(t, patched(t, nil))}
	p, err := plan.Make(cpu, facts, plan.Options{Prefix: scratch, Why: "test", Version: "1.0.0"})
	if err != nil {
		t.Fatal(err)
	}
	remark(t, &p, name, patches)
	st, err := store.Open(scratch)
	if err != nil {
		t.Fatal(err)
	}
	// Not t.Context: the bundle serves other tests too.
	b, err := build.New(build.Options{Plan: p, Store: st, Runner: run.System{}, Env: os.Environ(), Sources: patched(t, patches), LogDir: filepath.Join(scratch, "log"), Jobs: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = b.Close() }()
	out := bundle{keep(t, b, name, "stage1/pack"), keep(t, b, name, "stage2/wheel")}
	bundles[name] = out
	return out
}

// remark gives the steps that compile a patched source, and those that read what
// they make, fingerprints of their own. The rest comes from the store: a plan
// counts every file of a folder to every compile, and would compile it all again.
func remark(t testing.TB, p *plan.Plan, name string, patches []patch) {
	t.Helper()
	changed := map[string]bool{}
	for _, c := range patches {
		hit := false
		for _, s := range p.Steps {
			// A Python file goes straight into the wheel.
			if slices.Contains(s.Argv, "src/"+c.path) || s.ID == "stage2/wheel" && strings.HasSuffix(c.path, ".py") {
				changed[s.ID], hit = true, true
			}
		}
		if !hit {
			t.Fatalf("%s: no step compiles it by itself", c.path)
		}
	}
	for i := range p.Steps { // in the order in which they need each other
		s := &p.Steps[i]
		if changed[s.ID] || slices.ContainsFunc(s.Needs, func(n string) bool { return changed[n] }) {
			changed[s.ID] = true
			sum := sha256.Sum256([]byte(s.Fingerprint + name))
			s.Fingerprint = hex.EncodeToString(sum[:])
		}
	}
}

func keep(t testing.TB, b *build.Builder, name, step string) string {
	t.Helper()
	a, err := b.Make(context.Background(), step)
	if err != nil {
		t.Fatalf("%s: %v", step, problemText(err))
	}
	to := filepath.Join(scratch, "bundles", name, filepath.Base(a.Path))
	write(t, to, read(t, a.Path))
	return to
}

func patched(t testing.TB, patches []patch) fs.FS {
	t.Helper()
	all := fstest.MapFS{}
	err := fs.WalkDir(targets.FS, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := fs.ReadFile(targets.FS, path)
		all[path] = &fstest.MapFile{Data: b, Mode: 0o644}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range patches {
		f, ok := all[p.path]
		if !ok || strings.Count(string(f.Data), p.old) != 1 {
			t.Fatalf("%s: the text to replace is not there once: %q", p.path, p.old)
		}
		f.Data = []byte(strings.Replace(string(f.Data), p.old, p.new, 1))
	}
	return all
}

func digests(t testing.TB, sources fs.FS) map[string]string {
	t.Helper()
	out := map[string]string{}
	for path, f := range maps.All(sources.(fstest.MapFS)) {
		sum := sha256.Sum256(f.Data)
		out[path] = "sha256:" + hex.EncodeToString(sum[:])
	}
	return out
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
