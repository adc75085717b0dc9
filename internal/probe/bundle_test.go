package probe

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
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
	"github.com/invar-ops/invar/internal/plan"
	"github.com/invar-ops/invar/internal/run"
	"github.com/invar-ops/invar/internal/store"
	"github.com/invar-ops/invar/internal/target"
	"github.com/invar-ops/invar/internal/testkit"
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
	py := testkit.Need(t, latest)
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
	a, err := b.Make(context.Background(), step, func() {})
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
