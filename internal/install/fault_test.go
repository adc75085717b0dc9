package install

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/store"
)

// mount puts a small tmpfs at dir for the length of the test.
func mount(t testing.TB, dir string, size int) {
	t.Helper()
	err := unix.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d", size))
	if errors.Is(err, unix.EPERM) && os.Getenv("INVAR_CI") != "1" {
		t.Skip("mounting a tmpfs needs root with CAP_SYS_ADMIN")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
}

func remount(t testing.TB, dir string, flags uintptr, data string) {
	t.Helper()
	if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_REMOUNT|flags, data); err != nil {
		t.Fatal(err)
	}
}

// TestDiskFull lets an installation run out of space at every point: the room
// grows a page at a time until it is enough.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	small, big := makeBundle(t, dir, "a", 10), makeBundle(t, dir, "b", 60_000)
	disk := t.TempDir()
	mount(t, disk, 1<<20)
	p, err := Open(filepath.Join(disk, "home"))
	if err != nil {
		t.Fatal(err)
	}
	py := fakePython(t)
	first := apply(t, p, request(py), small)
	site := tree(t, py.Purelib)
	before := tree(t, first.Dir())
	page := os.Getpagesize()
	filler := filepath.Join(disk, "filler")
	failures := 0
	for room := 0; ; room += page {
		fill(t, disk, filler, room)
		r, err := p.Apply(t.Context(), request(py), big.run, big.wheel)
		if err == nil {
			healthy(t, r)
			break
		}
		failures++
		if !errors.Is(err, unix.ENOSPC) || report.ExitCode(err) != report.Failed || !strings.Contains(err.Error(), "space") {
			t.Fatalf("room %d: got %v, want a Problem about space with exit code 1", room, err)
		}
		if pr, ok := errors.AsType[*report.Problem](err); !ok || pr.Hint == "" {
			t.Errorf("room %d: %v has no hint", room, err)
		}
		healthy(t, first)
		if !maps.Equal(site, tree(t, py.Purelib)) || !maps.Equal(before, tree(t, first.Dir())) {
			t.Fatalf("room %d: something changed", room)
		}
		if gens, _ := p.env(py.ID()).generations(); len(gens) != 1 {
			t.Fatalf("room %d: generations %v are left", room, gens)
		}
		if room > 1<<20 {
			t.Fatal("it never succeeds")
		}
	}
	if failures < 5 {
		t.Errorf("only %d failures: the disk was not full", failures)
	}
	t.Logf("%d installations ran out of space", failures)
}

// fill leaves room bytes free on disk.
func fill(t testing.TB, disk, filler string, room int) {
	t.Helper()
	_ = os.Remove(filler)
	var st unix.Statfs_t
	if err := unix.Statfs(disk, &st); err != nil {
		t.Fatal(err)
	}
	n := int64(st.Bavail)*st.Bsize - int64(room)
	if n <= 0 {
		return
	}
	if err := os.WriteFile(filler, make([]byte, n), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestReadOnlyPlaces(t *testing.T) {
	t.Parallel()
	b := makeBundle(t, t.TempDir(), "a", 10)
	for _, tc := range []struct{ name, what string }{{"prefix", "prefix"}, {"site-packages", "site-packages"}} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			p, py := openPrefix(t), fakePython(t)
			dir := p.Dir
			if tc.what == "site-packages" {
				dir = py.Purelib
			}
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			mount(t, dir, 1<<20)
			remount(t, dir, unix.MS_RDONLY, "")
			_, err := p.Apply(t.Context(), request(py), b.run, b.wheel)
			refused(t, err)
			if !strings.Contains(err.Error(), tc.what) {
				t.Errorf("%v does not name the %s", err, tc.what)
			}
			if ids, _ := p.IDs(); len(ids) != 0 || len(tree(t, py.Purelib)) != 1 {
				t.Errorf("something was written: %v", ids)
			}
			remount(t, dir, 0, "")
			apply(t, p, request(py), b)
		})
	}
}

// TestReplaceAcrossFileSystems: what is moved aside may have to be copied.
func TestReplaceAcrossFileSystems(t *testing.T) {
	t.Parallel()
	b := makeBundle(t, t.TempDir(), "a", 10)
	disk, py := t.TempDir(), fakePython(t)
	mount(t, disk, 1<<20)
	p, err := Open(filepath.Join(disk, "home"))
	if err != nil {
		t.Fatal(err)
	}
	put(t, py.Purelib, map[string]string{Package + "/__init__.py": "pip", Package + "/sub/data": "d", meta: "m"})
	pkg := filepath.Join(py.Purelib, Package)
	if err := errors.Join(os.Chmod(filepath.Join(pkg, "sub/data"), 0o751), os.Symlink("__init__.py", filepath.Join(pkg, "link"))); err != nil {
		t.Fatal(err)
	}
	before := tree(t, py.Purelib)
	req := request(py)
	req.Replace = true
	apply(t, p, req, b)
	if exists(pkg) || exists(pkg+".invar-moved") {
		t.Error("it is still there")
	}
	if _, err := p.Uninstall(t.Context(), UninstallOptions{}); err != nil {
		t.Fatal(err)
	}
	if after := tree(t, py.Purelib); !maps.Equal(before, after) {
		t.Errorf("got %v, want %v", after, before)
	}
	if st, err := os.Stat(filepath.Join(pkg, "sub/data")); err != nil || st.Mode().Perm() != 0o751 {
		t.Errorf("mode %v, %v, want 0751", st.Mode(), err)
	}
}

// notes is a Progress that keeps what was announced.
type notes struct {
	mu    sync.Mutex
	lines []string
}

func (n *notes) Start(_, name string, _ int64) report.Step {
	n.Note(name)
	return report.Discard.Start("", "", 0)
}

func (n *notes) Note(text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lines = append(n.lines, text)
}

func TestTwoAtOnce(t *testing.T) {
	t.Parallel()
	b := makeBundle(t, t.TempDir(), "a", 10)
	p, py := openPrefix(t), fakePython(t)
	c := child{Prefix: p.Dir, Req: request(py), Run: b.run, Wheel: b.wheel, Hold: 300 * time.Millisecond}
	cmd, _ := c.start(t)
	err := p.Lock(t.Context(), store.LockOptions{NoWait: true})
	if report.ExitCode(err) != report.Failed || !strings.Contains(err.Error(), fmt.Sprintf("pid %d (holder)", cmd.Process.Pid)) {
		t.Fatalf("got %v, want exit code 1 and the holder's pid", err)
	}
	var seen notes
	if err := p.Lock(t.Context(), store.LockOptions{Progress: &seen}); err != nil {
		t.Fatal(err)
	}
	r := apply(t, p, request(py), b)
	if err := p.Unlock(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil || r.Generation != 2 || r.Previous != 1 {
		t.Errorf("generation %d after %d, child %v", r.Generation, r.Previous, err)
	}
	if len(seen.lines) != 1 || !strings.Contains(seen.lines[0], "holder") {
		t.Errorf("got %q, want one line about the holder", seen.lines)
	}
}

func TestWaitingEndsWithTheContext(t *testing.T) {
	t.Parallel()
	p, py := openPrefix(t), fakePython(t)
	if err := p.Lock(t.Context(), store.LockOptions{}); err != nil {
		t.Fatal(err)
	}
	defer p.Unlock()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	other, _ := Open(p.Dir)
	if _, err := other.Apply(ctx, request(py), "", ""); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want the end of the context", err)
	}
}

// TestClockSetBack: nothing depends on times, so files from the future are as
// good as others.
func TestClockSetBack(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a, b := makeBundle(t, dir, "a", 10), makeBundle(t, dir, "b", 10)
	p, py := openPrefix(t), fakePython(t)
	r := apply(t, p, request(py), a)
	future := time.Now().AddDate(10, 0, 0)
	for _, root := range []string{p.Dir, py.Prefix} {
		err := filepath.WalkDir(root, func(path string, _ os.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if st, err := os.Lstat(path); err != nil || st.Mode()&os.ModeSymlink != 0 {
				return err
			}
			return os.Chtimes(path, future, future)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	healthy(t, r)
	if r2 := apply(t, p, request(py), b); r2.Generation != 2 || mark(t, r2) != "b" {
		t.Errorf("generation %d", r2.Generation)
	}
	if c, err := p.GC(t.Context(), GCOptions{Keep: 1}); err != nil || len(c.Generations) != 1 {
		t.Errorf("gc: %+v, %v", c, err)
	}
}

// TestDamageIsSeen: level 1 finds what was done to an installation.
func TestDamageIsSeen(t *testing.T) {
	t.Parallel()
	b := makeBundle(t, t.TempDir(), "a", 1000)
	lib := "ops/cpu/lib/libinvar_cpu.so"
	for _, tc := range []struct {
		name, kind string
		do         func(r Receipt) error
	}{
		{"bit flip", "changed", func(r Receipt) error { return flip(filepath.Join(r.Dir(), lib)) }},
		{"truncated", "changed", func(r Receipt) error { return os.Truncate(filepath.Join(r.Dir(), lib), 10) }},
		{"removed", "missing", func(r Receipt) error { return os.Remove(filepath.Join(r.Dir(), lib)) }},
		{"link for a file", "changed", func(r Receipt) error {
			f := filepath.Join(r.Dir(), lib)
			return errors.Join(os.Rename(f, f+".x"), os.Symlink(f+".x", f))
		}},
		{"hook removed", "hook", func(r Receipt) error { return os.Remove(r.Hook.Path) }},
		{"hook changed", "hook", func(r Receipt) error { return os.WriteFile(r.Hook.Path, []byte("# mine\n"), 0o644) }},
		{"Python gone", "missing", func(r Receipt) error { return os.RemoveAll(r.Python.Prefix) }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			p, py := openPrefix(t), fakePython(t)
			r := apply(t, p, request(py), b)
			if err := tc.do(r); err != nil {
				t.Fatal(err)
			}
			h, err := Check(t.Context(), r, nil)
			if err != nil || h.OK || len(h.Faults) == 0 {
				t.Fatalf("got %+v, %v, want a fault", h, err)
			}
			f := h.Faults[len(h.Faults)-1]
			if f.Kind != tc.kind || f.Want == "" || f.Got == "" || f.Hint == "" {
				t.Errorf("got %+v, want %s with want, got and hint", f, tc.kind)
			}
			st, err := p.Status(t.Context(), nil)
			if err != nil || st.Envs[0].Health.OK {
				t.Errorf("status says %+v, %v", st, err)
			}
			if _, err := p.Uninstall(t.Context(), UninstallOptions{}); err != nil {
				t.Errorf("uninstall after damage: %v", err)
			}
		})
	}
}

func flip(path string) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	b[len(b)/2] ^= 4
	return os.WriteFile(path, b, 0o644)
}
