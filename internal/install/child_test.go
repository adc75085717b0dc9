package install

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"github.com/invar-ops/invar/internal/store"
)

// A child is one installation in a process of its own, to be killed.
type child struct {
	Prefix string
	Req    Request
	Run    string
	Wheel  string
	Hold   time.Duration // keep the lock this long before installing
	Undo   bool          // uninstall instead
}

const childEnv = "INVAR_TEST_INSTALL_CHILD"

func TestMain(m *testing.M) {
	if text := os.Getenv(childEnv); text != "" {
		os.Exit(childMain(text))
	}
	os.Exit(m.Run())
}

// childMain installs as cmd/invar does: signals end the context.
func childMain(text string) int {
	var c child
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		panic(err)
	}
	// Not stopped: a signal after the commit must not turn success into a death.
	ctx, _ := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	p, err := Open(c.Prefix)
	if err != nil {
		panic(err)
	}
	if c.Hold > 0 {
		if err := p.Lock(ctx, store.LockOptions{Command: "holder"}); err != nil {
			panic(err)
		}
		defer p.Unlock()
	}
	fmt.Println("start")
	time.Sleep(c.Hold)
	start := time.Now()
	if c.Undo {
		_, err = p.Uninstall(ctx, UninstallOptions{})
	} else {
		_, err = p.Apply(ctx, c.Req, c.Run, c.Wheel)
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("done", time.Since(start).Microseconds())
	return 0
}

// start runs c in a process and returns when it is about to install.
func (c child) start(t testing.TB) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), childEnv+"="+string(text))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	lines := bufio.NewScanner(out)
	if !lines.Scan() || lines.Text() != "start" {
		t.Fatalf("child said %q, want start", lines.Text())
	}
	return cmd, lines
}

// typical is how long an installation in a child takes.
func (c child) typical(t testing.TB) time.Duration {
	t.Helper()
	cmd, lines := c.start(t)
	var us int64
	for lines.Scan() {
		if _, err := fmt.Sscanf(lines.Text(), "done %d", &us); err != nil {
			t.Fatalf("child: %s", lines.Text())
		}
	}
	if err := cmd.Wait(); err != nil || us == 0 {
		t.Fatalf("child: %v after %d us", err, us)
	}
	return time.Duration(us) * time.Microsecond
}
