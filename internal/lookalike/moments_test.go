package lookalike

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A moment is a place on the way of a build, seen from outside: it has come
// when something new matches pattern, with at least this many bytes.
type moment struct {
	name    string
	pattern string // with {prefix}, {cache}, {home}, {opp} and {site}
	bytes   int64
	more    []string // arguments of the build
}

// moments go through the chain in its order, the start and the middle of each
// step where it has one.
var moments = []moment{
	{"the download begins", "{cache}/partial/*", 0, nil},
	{"the download is half-way", "{cache}/partial/*", 4096, nil},
	{"the file is verified", "{cache}/sha256/*", 0, nil},
	{"the extraction begins", "{prefix}/work/release-*/ops", 0, nil},
	{"the extraction is half-way", "{prefix}/work/release-*/ops/packages/vendors/*/op_api", 0, nil},
	{"the sources of the wheel are unpacked", "{prefix}/work/release-*/extension/*", 0, nil},
	{"the content was accepted", "{home}/invar.lock", 0, nil},
	{"the transaction begins", "{prefix}/env/*/gen/*", 0, nil},
	{"install.sh begins", "{prefix}/work/release-*/installer/home", 0, nil},
	{"install.sh is half-way", "{prefix}/env/*/gen/*/ops/*/vendors/*/op_proto", 0, nil},
	{"install.sh is nearly done", "{prefix}/env/*/gen/*/ops/*/vendors/*/version.info", 0, nil},
	{"the copy begins", "{prefix}/env/*/gen/*/ops/*/vendors/*", 0, []string{"--installer", "copy"}},
	{"the copy is half-way", "{prefix}/env/*/gen/*/ops/*/vendors/*/op_impl/ai_core/tbe/kernel", 0, []string{"--installer", "copy"}},
	{"the wheel is begun", "{prefix}/work/release-*/stage2/scripts", 0, nil},
	{"the wheel is built", "{prefix}/work/release-*/stage2/dist/*.whl", 0, nil},
	{"the wheel is unpacked", "{prefix}/env/*/gen/*/site", 0, nil},
	{"the wheel is half unpacked", "{prefix}/env/*/gen/*/site/batch_invariant_ops/*.so", 0, nil},
	{"the startup module is there", "{prefix}/env/*/gen/*/start/*", 0, nil},
	{"the receipt is there", "{prefix}/env/*/gen/*/receipt.json", 0, nil},
	{"the hook is there", "{site}/invar.pth", 0, nil},
	{"the generation is current", "{prefix}/env/*/current", 0, nil},
	{"the vendor is in CANN", "{opp}/vendors/batch_invariant", 0, nil},
	{"config.ini is there", "{opp}/vendors/config.ini", 0, nil},
}

// at gives the paths that match now.
func (m *machine) at(pattern, cache string) []string {
	found, _ := filepath.Glob(strings.NewReplacer("{prefix}", m.prefix, "{cache}", filepath.Join(cache, "downloads"), "{home}", m.home,
		"{opp}", m.cann.Opp, "{site}", m.py.Purelib).Replace(pattern))
	return found
}

// A child is a build under way.
type child struct {
	cmd  *exec.Cmd
	out  strings.Builder
	done chan struct{}
}

func (m *machine) start(args, env []string) *child {
	m.t.Helper()
	c := &child{cmd: exec.Command(invar, args...), done: make(chan struct{})}
	c.cmd.Dir, c.cmd.Env, c.cmd.Stdout, c.cmd.Stderr = m.home, m.env(env...), &c.out, &c.out
	c.cmd.WaitDelay = 5 * time.Second // what the killed one had started may hold the pipe a little
	if err := c.cmd.Start(); err != nil {
		m.t.Fatal(err)
	}
	go func() {
		defer close(c.done)
		_ = c.cmd.Wait()
	}()
	return c
}

// when waits for the moment, or for the end of the child: then it is false.
func (m *machine) when(c *child, w moment, cache string, before []string) bool {
	old := map[string]bool{}
	for _, p := range before {
		old[p] = true
	}
	for {
		for _, p := range m.at(w.pattern, cache) {
			st, err := os.Lstat(p)
			if err == nil && (!old[p] || w.bytes > 0) && (st.IsDir() || st.Size() >= w.bytes) {
				return true
			}
		}
		select {
		case <-c.done:
			return false
		case <-time.After(100 * time.Microsecond):
		}
	}
}

// kill ends the child as the kernel does when memory runs out, without a
// chance to clean up.
func (c *child) kill(t *testing.T) {
	t.Helper()
	if err := c.cmd.Process.Signal(syscall.SIGKILL); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatal(err)
	}
	<-c.done
}

// stopped holds the child still while do runs.
func (c *child) stopped(t *testing.T, do func()) {
	t.Helper()
	if err := c.cmd.Process.Signal(syscall.SIGSTOP); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatal(err)
	}
	do()
	if err := c.cmd.Process.Signal(syscall.SIGCONT); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatal(err)
	}
	<-c.done
}
