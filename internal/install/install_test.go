package install

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/invar-ops/invar/internal/report"
)

func TestLifeOfAnInstallation(t *testing.T) {
	t.Parallel()
	p, py, dir := openPrefix(t), fakePython(t), t.TempDir()
	before := tree(t, py.Purelib)
	a, b := makeBundle(t, dir, "a", 10), makeBundle(t, dir, "b", 10)
	if _, err := p.Current(py.ID()); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("got %v, want fs.ErrNotExist", err)
	}
	start := time.Now()
	r1 := apply(t, p, request(py), a)
	t.Logf("apply: %v", time.Since(start))
	hook, err := os.ReadFile(filepath.Join(py.Purelib, HookName))
	if err != nil || string(hook) != r1.Site()+"\n" {
		t.Fatalf("hook %q, want %q (%v)", hook, r1.Site(), err)
	}
	r2 := apply(t, p, request(py), b)
	if r1.GoesBack() || !r2.GoesBack() {
		t.Errorf("goes back: %v from 1, %v from 2; want false, true", r1.GoesBack(), r2.GoesBack())
	}
	if r1.Generation != 1 || r2.Generation != 2 || r2.Previous != 1 {
		t.Errorf("generations %d and %d after %d", r1.Generation, r2.Generation, r2.Previous)
	}
	if got := mark(t, r2); got != "b" {
		t.Errorf("current is %q, want b", got)
	}
	start = time.Now()
	st, err := p.Status(t.Context(), nil)
	t.Logf("status: %v", time.Since(start))
	if err != nil || len(st.Envs) != 1 || !st.Envs[0].Health.OK || len(st.Envs[0].Generations) != 2 || st.Envs[0].Target != "cpu" {
		t.Errorf("status %+v, %v", st, err)
	}
	back, err := p.Rollback(t.Context(), py.ID())
	if err != nil || back.To != 1 || mark(t, r1) != "a" {
		t.Errorf("rollback %+v, %v", back, err)
	}
	healthy(t, r1)
	if r3 := apply(t, p, request(py), b); r3.Generation != 3 || r3.Previous != 1 {
		t.Errorf("generation %d after %d, want 3 after 1", r3.Generation, r3.Previous)
	}
	c, err := p.GC(t.Context(), GCOptions{Keep: 2})
	if err != nil || len(c.Generations) != 1 || !strings.HasSuffix(c.Generations[0], "/2") {
		t.Errorf("gc %+v, %v", c, err)
	}
	removed, err := p.Uninstall(t.Context(), UninstallOptions{})
	if err != nil || len(removed.Left) != 0 || !removed.Prefix {
		t.Errorf("uninstall %+v, %v", removed, err)
	}
	if after := tree(t, py.Purelib); !maps.Equal(before, after) {
		t.Errorf("site-packages: got %v, want %v", after, before)
	}
	if exists(p.Dir) {
		t.Errorf("%s is still there", p.Dir)
	}
}

// mark reads which bundle Python would see.
func mark(t testing.TB, r Receipt) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(r.Ops(), "share", "contract.txt"))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestTakeBack: a first generation whose probe failed leaves nothing on the
// path, a later one leaves the one before.
func TestTakeBack(t *testing.T) {
	t.Parallel()
	p, py, dir := openPrefix(t), fakePython(t), t.TempDir()
	a, b := makeBundle(t, dir, "a", 10), makeBundle(t, dir, "b", 10)
	before := tree(t, py.Purelib)
	first := apply(t, p, request(py), a)
	if _, err := p.Rollback(t.Context(), py.ID()); report.ExitCode(err) != report.Failed {
		t.Errorf("rollback of the first generation: got %v, want exit code 1", err)
	}
	if _, err := p.TakeBack(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	if after := tree(t, py.Purelib); !maps.Equal(before, after) {
		t.Errorf("got %v, want %v", after, before)
	}
	second := apply(t, p, request(py), a)
	third := apply(t, p, request(py), b)
	if second.Generation != 2 || second.Previous != 0 || third.Previous != 2 {
		t.Errorf("generations %d after %d, %d after %d", second.Generation, second.Previous, third.Generation, third.Previous)
	}
	if _, err := p.TakeBack(t.Context(), second); err == nil {
		t.Error("took back a generation that is not current")
	}
	if back, err := p.TakeBack(t.Context(), third); err != nil || back.To != 2 {
		t.Errorf("%+v, %v", back, err)
	}
	healthy(t, second)
}

// TestRollbackKeepsTheHook: a hook that others removed is written again by the
// next build; going back to the generation before leaves that one importable,
// and an uninstall still removes everything.
func TestRollbackKeepsTheHook(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		again bool // the hook goes after the second build too
	}{{"removed before the second build", false}, {"removed before the rollback", true}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p, py, dir := openPrefix(t), fakePython(t), t.TempDir()
			before := tree(t, py.Purelib)
			hook := filepath.Join(py.Purelib, HookName)
			first := apply(t, p, request(py), makeBundle(t, dir, "a", 10))
			if err := os.Remove(hook); err != nil {
				t.Fatal(err)
			}
			healthy(t, apply(t, p, request(py), makeBundle(t, dir, "b", 10)))
			if c.again {
				if err := os.Remove(hook); err != nil {
					t.Fatal(err)
				}
			}
			if back, err := p.Rollback(t.Context(), py.ID()); err != nil || back.To != 1 {
				t.Fatalf("rollback %+v, %v", back, err)
			}
			healthy(t, first)
			if st, err := p.Status(t.Context(), nil); err != nil || !st.Envs[0].Health.OK {
				t.Errorf("status %+v, %v; want a whole installation", st, err)
			}
			if _, err := p.Uninstall(t.Context(), UninstallOptions{}); err != nil {
				t.Fatal(err)
			}
			if after := tree(t, py.Purelib); !maps.Equal(before, after) {
				t.Errorf("site-packages: got %v, want %v", after, before)
			}
		})
	}
}
