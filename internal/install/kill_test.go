package install

import (
	"errors"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/invar-ops/invar/internal/store"
)

// TestKilledAnywhere kills installations with SIGKILL at random times. After
// each one the old or the new generation is current and whole, and the next
// installation goes through, without a trace of those that were killed.
func TestKilledAnywhere(t *testing.T) {
	kills := 200
	if testing.Short() {
		kills = 20
	}
	if n := os.Getenv("INVAR_SOAK_KILLS"); n != "" {
		var err error
		if kills, err = strconv.Atoi(n); err != nil || kills < 1 {
			t.Fatalf("INVAR_SOAK_KILLS: got %q, want a number of kills", n)
		}
	}
	p, py, dir := memoryPrefix(t), fakePython(t), t.TempDir()
	bundles := []bundle{makeBundle(t, dir, "a", 200_000), makeBundle(t, dir, "b", 200_000)}
	c := child{Prefix: p.Dir, Req: request(py)}
	c.Run, c.Wheel = bundles[0].run, bundles[0].wheel
	span := c.typical(t)
	last, err := p.Current(py.ID())
	if err != nil {
		t.Fatal(err)
	}
	outcome := map[string]int{}
	stages := map[string]int{}
	start := time.Now()
	for i := range kills {
		c.Run, c.Wheel = bundles[i%2].run, bundles[i%2].wheel
		cmd, _ := c.start(t)
		time.Sleep(time.Duration(rand.Int64N(int64(span * 12 / 10))))
		_ = cmd.Process.Signal(syscall.SIGKILL)
		if err := cmd.Wait(); err == nil {
			outcome["ended before the kill"]++
			span = span * 95 / 100 // the first one was measured on a busier machine
		} else {
			span = span * 102 / 100
		}
		r, err := p.Current(py.ID())
		if err != nil {
			t.Fatalf("kill %d: %v", i, err)
		}
		healthy(t, r)
		stages[p.leftover(t, py.ID(), r.Generation)]++
		switch {
		case r.Generation == last.Generation:
			outcome["old generation"]++
			if r.Wheel != last.Wheel {
				t.Fatalf("kill %d: generation %d was reused", i, r.Generation)
			}
		case r.Generation > last.Generation:
			outcome["new generation"]++
		default:
			t.Fatalf("kill %d: generation %d after %d", i, r.Generation, last.Generation)
		}
		last = r
		if i%20 == 19 {
			last = apply(t, p, request(py), bundles[i%2])
			noLitter(t, p, py.Purelib, py.ID(), last.Generation)
			if _, err := p.GC(t.Context(), GCOptions{Keep: 1}); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Logf("%d kills in %v, one installation takes %v: %v; what the killed run had left: %v", kills, time.Since(start).Round(time.Millisecond), span, outcome, stages)
	if outcome["old generation"] == 0 || outcome["new generation"] == 0 {
		t.Errorf("the kills came all before or all after the commit: %v", outcome)
	}
	removed, err := p.Uninstall(t.Context(), UninstallOptions{})
	if err != nil || !removed.Prefix {
		t.Errorf("uninstall: %+v, %v", removed, err)
	}
}

// memoryPrefix is a prefix on a file system in memory, where there is one:
// SIGKILL does not care, and another test's disk traffic does not slow it down.
func memoryPrefix(t testing.TB) *Prefix {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "invar-test-") //nolint:usetesting // t.TempDir is on the disk; this has to be in memory
	if err != nil {
		return openPrefix(t)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	p, err := Open(filepath.Join(dir, "home"))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// leftover names how far the killed run came, for the statistics.
func (p *Prefix) leftover(t testing.TB, id string, current int) string {
	t.Helper()
	e := p.env(id)
	gens, err := e.generations()
	if err != nil {
		t.Fatal(err)
	}
	n := slices.Max(gens)
	if n <= current {
		return "nothing unfinished"
	}
	for _, f := range []string{"receipt.json", "site", "ops"} {
		if exists(filepath.Join(e.gen(n), f)) {
			return "up to " + f
		}
	}
	return "an empty generation"
}

// noLitter asks that nothing but what belongs there is left.
func noLitter(t testing.TB, p *Prefix, purelib, id string, current int) {
	t.Helper()
	e := p.env(id)
	s, err := e.readState()
	if err != nil {
		t.Fatal(err)
	}
	gens, err := e.generations()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(slices.Sorted(slices.Values(s.Committed)), gens) || gens[len(gens)-1] != current {
		t.Errorf("generations %v, committed %v, current %d", gens, s.Committed, current)
	}
	for _, dir := range []string{e.dir, purelib, p.Dir} {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range entries {
			if strings.HasPrefix(f.Name(), ".") || strings.Contains(f.Name(), ".invar-") {
				t.Errorf("litter: %s", filepath.Join(dir, f.Name()))
			}
		}
	}
}

// TestKilledWhileReplacing does the same with a copy of another installer to
// move aside and a hook of another prefix to take over: after each kill Python
// finds one whole package, and uninstall gives back what was there.
func TestKilledWhileReplacing(t *testing.T) {
	kills := 60
	if testing.Short() {
		kills = 10
	}
	dir := t.TempDir()
	a, b := makeBundle(t, dir, "a", 20_000), makeBundle(t, dir, "b", 20_000)
	finds := map[string]int{}
	var span time.Duration
	for i := range kills {
		py := fakePython(t)
		other, p := openPrefix(t), openPrefix(t)
		if i%2 == 1 {
			p = memoryPrefix(t) // moving aside means copying, then
		}
		apply(t, other, request(py), a)
		put(t, py.Purelib, map[string]string{Package + "/__init__.py": "pip", Package + "/x.py": strings.Repeat("x", 1000), meta: "m"})
		before := tree(t, py.Purelib)
		c := child{Prefix: p.Dir, Req: request(py), Run: b.run, Wheel: b.wheel}
		c.Req.Replace, c.Req.TakeOver = true, true
		if span == 0 {
			span = c.typical(t)
			continue
		}
		cmd, _ := c.start(t)
		time.Sleep(time.Duration(rand.Int64N(int64(span * 11 / 10))))
		_ = cmd.Process.Signal(syscall.SIGKILL)
		_ = cmd.Wait()
		finds[wholePackage(t, py.Purelib, other, p)]++
		r := apply(t, p, c.Req, b)
		noLitter(t, p, py.Purelib, py.ID(), r.Generation)
		if _, err := p.Uninstall(t.Context(), UninstallOptions{}); err != nil {
			t.Fatal(err)
		}
		if after := tree(t, py.Purelib); !maps.Equal(before, after) {
			t.Fatalf("kill %d: got %v, want %v", i, after, before)
		}
	}
	t.Logf("%d kills: Python finds %v", kills-1, finds)
}

// wholePackage says which package a Python would import, by the rules of
// sys.path, and fails when it is not whole.
func wholePackage(t testing.TB, purelib string, prefixes ...*Prefix) string {
	t.Helper()
	if exists(filepath.Join(purelib, Package)) {
		if !exists(filepath.Join(purelib, Package, "x.py")) || !exists(filepath.Join(purelib, Package, "__init__.py")) {
			t.Fatal("half of the package that pip installed is left")
		}
		return "pip's"
	}
	hook, err := os.ReadFile(filepath.Join(purelib, HookName))
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range prefixes {
		ids, err := p.IDs()
		if err != nil || len(ids) == 0 || string(hook) != p.env(ids[0]).hookLine() {
			continue
		}
		r, err := p.Current(ids[0])
		if err != nil {
			t.Fatal(err)
		}
		var h Health
		if err := h.files(t.Context(), p.env(ids[0]), r, false); err != nil || len(h.Faults) > 0 {
			t.Fatalf("%+v, %v", h, err)
		}
		return []string{"the other prefix's", "ours"}[i]
	}
	t.Fatalf("hook %q names nothing", hook)
	return ""
}

// TestKilledFirstInstallation: nothing was there, so nothing or all is.
func TestKilledFirstInstallation(t *testing.T) {
	kills := 40
	if testing.Short() {
		kills = 8
	}
	b := makeBundle(t, t.TempDir(), "a", 20_000)
	seen := map[string]int{}
	var span time.Duration
	for i := range kills {
		p, py := memoryPrefix(t), fakePython(t)
		c := child{Prefix: p.Dir, Req: request(py), Run: b.run, Wheel: b.wheel}
		if i == 0 {
			span = c.typical(t)
			continue
		}
		cmd, _ := c.start(t)
		time.Sleep(time.Duration(rand.Int64N(int64(span * 12 / 10))))
		_ = cmd.Process.Signal(syscall.SIGKILL)
		_ = cmd.Wait()
		r, err := p.Current(py.ID())
		switch {
		case err == nil:
			healthy(t, r)
			seen["installed"]++
		case errors.Is(err, fs.ErrNotExist):
			seen["nothing"]++
		default:
			t.Fatal(err)
		}
		if i%2 == 0 { // either way on: install again, or clean up
			noLitter(t, p, py.Purelib, py.ID(), apply(t, p, request(py), b).Generation)
			continue
		}
		if ids, _ := p.IDs(); len(ids) == 0 {
			continue // killed before it wrote anything
		}
		if _, err := p.Uninstall(t.Context(), UninstallOptions{}); err != nil {
			t.Fatal(err)
		}
		if left := tree(t, py.Purelib); len(left) != 1 || exists(p.Dir) {
			t.Errorf("left: %v", left)
		}
	}
	t.Logf("%d kills: %v", kills-1, seen)
}

// TestKilledUninstall: what is left is something that uninstall finishes, and
// what it finally leaves is what was there before anything was installed.
func TestKilledUninstall(t *testing.T) {
	kills := 40
	if testing.Short() {
		kills = 8
	}
	b := makeBundle(t, t.TempDir(), "a", 20_000)
	seen := map[string]int{}
	var span time.Duration
	for i := range kills {
		p, py := memoryPrefix(t), fakePython(t)
		put(t, py.Purelib, map[string]string{Package + "/__init__.py": "pip", meta: "m"})
		before := tree(t, py.Purelib)
		req := request(py)
		req.Replace = true
		apply(t, p, req, b)
		apply(t, p, req, b)
		c := child{Prefix: p.Dir, Req: req, Undo: true}
		if i == 0 {
			span = c.typical(t)
			continue
		}
		cmd, _ := c.start(t)
		time.Sleep(time.Duration(rand.Int64N(int64(span))))
		_ = cmd.Process.Signal(syscall.SIGKILL)
		_ = cmd.Wait()
		if !exists(filepath.Join(p.Dir, "env")) {
			seen["done"]++
			_ = os.Remove(store.LockPath(p.Dir)) // killed before its last two steps
			_ = os.Remove(p.Dir)
		} else {
			seen["half done"]++
			if i%2 == 0 {
				apply(t, p, req, b) // installing instead is fine, too
			}
			if _, err := p.Uninstall(t.Context(), UninstallOptions{}); err != nil {
				t.Fatalf("kill %d: %v", i, err)
			}
		}
		if after := tree(t, py.Purelib); !maps.Equal(before, after) || exists(p.Dir) {
			t.Fatalf("kill %d: got %v, want %v; prefix there: %v", i, after, before, exists(p.Dir))
		}
	}
	t.Logf("%d kills: %v", kills-1, seen)
}

// TestSignals: SIGINT and SIGTERM end an installation without litter.
func TestSignals(t *testing.T) {
	dir := t.TempDir()
	b := makeBundle(t, dir, "a", 2_000_000)
	p, py := memoryPrefix(t), fakePython(t)
	c := child{Prefix: p.Dir, Req: request(py), Run: b.run, Wheel: b.wheel}
	span := c.typical(t)
	stopped := 0
	for i := range 20 {
		before, err := p.Current(py.ID())
		if err != nil {
			t.Fatal(err)
		}
		cmd, _ := c.start(t)
		time.Sleep(time.Duration(rand.Int64N(int64(span))))
		_ = cmd.Process.Signal([]os.Signal{os.Interrupt, syscall.SIGTERM}[i%2])
		werr := cmd.Wait()
		r, err := p.Current(py.ID())
		if err != nil {
			t.Fatal(err)
		}
		healthy(t, r)
		if werr != nil {
			stopped++
			if r.Generation != before.Generation {
				t.Errorf("it ended with %v but committed generation %d", werr, r.Generation)
			}
		}
		noLitter(t, p, py.Purelib, py.ID(), r.Generation)
		if err := p.Lock(t.Context(), store.LockOptions{NoWait: true}); err != nil {
			t.Fatal(err)
		}
		_ = p.Unlock()
	}
	if stopped == 0 {
		t.Error("no signal came before the end")
	}
	t.Logf("%d of 20 stopped before the commit", stopped)
}
