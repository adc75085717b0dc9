package lookalike

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/invar-ops/invar/internal/install"
	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/testkit/cann"
)

// fetching are the arguments of a build that downloads both files, links the
// vendor into CANN, and whose probe fails at once: what comes before it is
// tested here.
func (m *mirror) fetching() []string {
	args := []string{"build", "ascend910b", "--python", m.py.Prefix, "--mirror", m.server.URL, "--ca-file", m.server.CA, "--into-cann"}
	return append(append(args, "--lock", filepath.Join(m.home, "invar.lock"), "--allow-version-skew"), m.digests...)
}

// catch starts a build and waits for the moment. Some last for a tenth of a
// second, and on a busy machine this process may sleep through one: then the
// build has ended as it does, and another one is started.
func (m *mirror) catch(w moment, cache string, env []string) *child {
	m.t.Helper()
	for range 4 {
		was := m.at(w.pattern, cache)
		c := m.start(append(m.fetching(), w.more...), env)
		if m.when(c, w, cache, was) {
			return c
		}
		if code := c.cmd.ProcessState.ExitCode(); code != report.CheckFailed {
			m.t.Errorf("%s: the build ended with %d before it came\n%s", w.name, code, c.out.String())
			return nil
		}
		if strings.HasPrefix(w.pattern, "{cache}") {
			_ = os.RemoveAll(cache) // it has the file now, and would not fetch it again
		}
	}
	m.t.Errorf("%s: it never came", w.name)
	return nil
}

// TestKilledAtEachStep kills a build (SIGKILL) at the start and in the middle of
// each of its steps. Nothing may be half installed, CANN is as it was or
// complete, and what follows works without repair.
func TestKilledAtEachStep(t *testing.T) {
	t.Parallel()
	m := newMirror(t, cann.Package{Variant: cann.MissingSymbol}, map[string]cann.Fault{"run": cann.Slow})
	m.server.Rate = 64 << 10
	before := strings.Join(cann.Files(t, m.cann.Root), "\n")
	cache := filepath.Join(m.home, "cache")
	kept := []string{"INVAR_CACHE=" + cache}
	for _, w := range moments {
		_ = os.Remove(filepath.Join(m.home, "invar.lock"))
		if strings.Contains(w.pattern, "/stage2/") { // the wheel of the run before serves otherwise
			if err := os.RemoveAll(filepath.Join(m.prefix, "store")); err != nil {
				t.Fatal(err)
			}
		}
		c := m.catch(w, cache, kept)
		if c == nil {
			continue
		}
		c.kill(t)
		if strings.HasPrefix(w.pattern, "{cache}/sha256") && !strings.Contains(c.out.String(), "going on with") {
			t.Errorf("after a kill in the middle the download begins anew:\n%s", c.out.String())
		}
		m.afterKill(t, w.name, before)
	}
	m.killedAtRandom(t, kept, before)
	m.invar(0, "gc")
	if left, _ := filepath.Glob(filepath.Join(m.prefix, "work", "*")); len(left) != 0 {
		t.Errorf("left after gc: %v", left)
	}
	if now := strings.Join(cann.Files(t, m.cann.Root), "\n"); now != before {
		t.Error("the tree of CANN has changed")
	}
}

// killedAtRandom is for .ci/soak: as many builds as it says, killed whenever.
func (m *mirror) killedAtRandom(t *testing.T, env []string, before string) {
	t.Helper()
	text := os.Getenv("INVAR_SOAK_ASCEND_KILLS")
	if text == "" {
		return
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("INVAR_SOAK_ASCEND_KILLS: got %q, want a number of kills", text)
	}
	began := time.Now()
	m.invarIn(report.CheckFailed, env, m.fetching()...)
	span := time.Since(began)
	for i := range n {
		c := m.start(m.fetching(), env)
		time.Sleep(time.Duration(rand.Int64N(int64(span))))
		c.kill(t)
		m.afterKill(t, "kill "+strconv.Itoa(i), before)
	}
}

// afterKill wants either nothing installed and CANN as it was, or a whole
// generation; the next run finishes what was begun outside the prefix, and going
// back leaves no trace there.
func (m *machine) afterKill(t *testing.T, when, before string) {
	t.Helper()
	p, err := install.Open(m.prefix)
	if err != nil {
		t.Fatal(err)
	}
	r, err := p.Current(m.py.ID())
	if err != nil {
		if now := strings.Join(cann.Files(t, m.cann.Root), "\n"); now != before {
			t.Errorf("%s: nothing is installed, and the tree of CANN has changed", when)
		}
		return
	}
	_, _ = p.Rollback(t.Context(), m.py.ID()) // there is nothing before it; it finishes what is half done
	h, err := install.Check(t.Context(), r, m.env())
	if err != nil || !h.OK {
		t.Errorf("%s: %v, %v", when, err, h.Faults)
	}
	config, err := os.ReadFile(filepath.Join(m.cann.Opp, "vendors", "config.ini"))
	if err != nil || string(config) != "load_priority=batch_invariant\n" || !there(filepath.Join(m.cann.Opp, "vendors", "batch_invariant", "op_api")) {
		t.Errorf("%s: CANN's tree is half done after the next start: %q, %v", when, config, err)
	}
	if _, err := p.TakeBack(t.Context(), r); err != nil {
		t.Errorf("%s: %v", when, err)
	}
	if now := strings.Join(cann.Files(t, m.cann.Root), "\n"); now != before {
		left, _ := filepath.Glob(filepath.Join(m.cann.Opp, "vendors", "*"))
		t.Errorf("%s: taken back, and the tree of CANN has changed: %v", when, left)
	}
}

// small mounts a small file system at dir for the time of the test.
func small(t *testing.T, dir, size string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("none", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Skip("needs the right to mount: ", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
}

// fill takes all that is free on the file system of dir.
func fill(t *testing.T, dir string) (file string) {
	t.Helper()
	file = filepath.Join(dir, "filler")
	f, err := os.Create(file)
	if err != nil {
		return file // not even room for a name
	}
	defer f.Close()
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		t.Fatal(err)
	}
	at, step := int64(0), int64(st.Bavail)*st.Bsize
	for step >= st.Bsize {
		if unix.Fallocate(int(f.Fd()), 0, at, step) == nil {
			at += step
			continue
		}
		step = step / 2 / st.Bsize * st.Bsize
	}
	return file
}

// TestFullDiskAtEachStep lets the disk of the prefix and of the cache run full
// at each step that writes there: the build says so, and leaves nothing.
func TestFullDiskAtEachStep(t *testing.T) {
	t.Parallel()
	m := newMirror(t, cann.Package{Variant: cann.MissingSymbol}, map[string]cann.Fault{"run": cann.Slow})
	m.server.Rate = 64 << 10
	small(t, m.prefix, "96m")
	before := strings.Join(cann.Files(t, m.cann.Root), "\n")
	cache := filepath.Join(m.prefix, "cache")
	for _, w := range moments {
		if w.name == "the startup module is there" {
			break // what is written from here on may be in the last page already
		}
		if w.bytes == 0 && strings.HasPrefix(w.pattern, "{cache}") {
			_ = os.RemoveAll(cache)
		}
		if strings.HasPrefix(w.pattern, "{home}") || w.name == "the wheel is built" {
			continue // another disk; or what follows needs no more room
		}
		c := m.catch(w, cache, []string{"INVAR_CACHE=" + cache})
		if c == nil {
			continue
		}
		filler := ""
		c.stopped(t, func() { filler = fill(t, m.prefix) })
		code, text := c.cmd.ProcessState.ExitCode(), c.out.String()
		if code <= 0 || code == report.CheckFailed || !strings.Contains(text, "space") && !strings.Contains(text, "full") {
			t.Errorf("%s: ended with %d\n%s", w.name, code, text)
		}
		if err := os.Remove(filler); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		m.nothing()
		if now := strings.Join(cann.Files(t, m.cann.Root), "\n"); now != before {
			t.Errorf("%s: the tree of CANN has changed", w.name)
		}
	}
	m.invarIn(report.CheckFailed, []string{"INVAR_CACHE=" + cache}, m.fetching()...) // with room it comes as far as its probe
}

// TestFullDiskOfCANN cannot write config.ini: the switch goes back with it.
func TestFullDiskOfCANN(t *testing.T) {
	t.Parallel()
	m := newMirror(t, cann.Package{Variant: cann.MissingSymbol}, nil)
	vendors := filepath.Join(m.cann.Opp, "vendors")
	small(t, vendors, "64k")
	filler := fill(t, vendors)
	res := m.start(m.fetching(), nil)
	<-res.done
	text := res.out.String()
	if code := res.cmd.ProcessState.ExitCode(); code <= 0 || code == report.CheckFailed || !strings.Contains(text, "space") && !strings.Contains(text, "full") {
		t.Errorf("ended with %d\n%s", code, text)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	m.nothing()
}
