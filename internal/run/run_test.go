package run

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

var pathEnv = []string{"PATH=/usr/bin:/bin"}

func TestRunReturnsCodeStreamsAndLog(t *testing.T) {
	t.Parallel()
	log := filepath.Join(t.TempDir(), "log")
	res, err := System{}.Run(t.Context(), Cmd{
		Argv: []string{"sh", "-c", "echo out; echo err >&2; exit 7"}, Env: pathEnv, Log: log,
	})
	re, ok := errors.AsType[*Error](err)
	if !ok || res.Code != 7 || re.Result.Code != 7 {
		t.Fatalf("got code %d, %v; want 7", res.Code, err)
	}
	if string(res.Stdout) != "out\n" || string(res.Stderr) != "err\n" {
		t.Errorf("streams: %q, %q", res.Stdout, res.Stderr)
	}
	b, _ := os.ReadFile(log)
	if text := string(b); !strings.HasPrefix(text, "$ sh -c 'echo out;") || !strings.Contains(text, "err\n") {
		t.Errorf("log: %q", text)
	}
	if want := "sh ended with exit code 7"; err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
}

func TestRunGivesOnlyTheNamedEnvironment(t *testing.T) {
	t.Parallel()
	res, err := System{}.Run(t.Context(), Cmd{Argv: []string{"env"}, Env: []string{"PATH=/usr/bin:/bin", "A=1"}})
	if err != nil || string(res.Stdout) != "PATH=/usr/bin:/bin\nA=1\n" {
		t.Fatalf("got %q, %v", res.Stdout, err)
	}
	res, err = System{}.Run(t.Context(), Cmd{Argv: []string{"/usr/bin/env"}})
	if err != nil || len(res.Stdout) != 0 {
		t.Fatalf("nil Env: got %q, %v; want nothing inherited", res.Stdout, err)
	}
}

func TestRunNotFound(t *testing.T) {
	t.Parallel()
	_, err := System{}.Run(t.Context(), Cmd{Argv: []string{"no-such-tool"}, Env: pathEnv})
	if !NotFound(err) {
		t.Fatalf("got %v, want not found", err)
	}
}

// The group dies with the context: a shell that waits for a child, the child,
// and a child that ignores SIGTERM.
func TestRunEndsTheGroup(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ctx, cancel := context.WithCancelCause(t.Context())
	script := "sleep 60 & echo $! >" + dir + "/child; trap 'echo bye >" + dir + "/trap; exit 1' TERM; touch " + dir + "/up; wait"
	done := make(chan error, 1)
	go func() {
		_, err := System{}.Run(ctx, Cmd{Argv: []string{"sh", "-c", script}, Env: pathEnv})
		done <- err
	}()
	waitFor(t, filepath.Join(dir, "up"))
	why := errors.New("enough")
	cancel(why)
	if err := <-done; !errors.Is(err, why) {
		t.Errorf("got %v, want the cause", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "trap")); err != nil {
		t.Error("the trap did not run: SIGTERM came too late or never")
	}
	b, err := os.ReadFile(filepath.Join(dir, "child"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		t.Fatal(err)
	}
	// The kernel delivers a signal to a group when it gets to it.
	for range 200 {
		if !alive(pid) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("child %d lives on", pid)
}

func TestRunReportsSignalAndTimeout(t *testing.T) {
	t.Parallel()
	res, err := System{}.Run(t.Context(), Cmd{Argv: []string{"sh", "-c", "kill -9 $$"}, Env: pathEnv})
	if res.Signal != syscall.SIGKILL || err == nil || !strings.Contains(err.Error(), "killed (signal 9") {
		t.Errorf("got signal %v, %v", res.Signal, err)
	}
	_, err = System{}.Run(t.Context(), Cmd{Argv: []string{"sleep", "60"}, Env: pathEnv, Timeout: 50 * time.Millisecond})
	if _, ok := errors.AsType[*TimeoutError](err); !ok {
		t.Errorf("got %v, want a time-out that names the limit", err)
	}
}

func TestRunBoundsMemory(t *testing.T) {
	t.Parallel()
	res, err := System{}.Run(t.Context(), Cmd{
		Argv: []string{"sh", "-c", "head -c 20000000 /dev/zero; echo end"}, Env: pathEnv,
	})
	if err != nil || len(res.Stdout) > MaxCapture || !strings.HasSuffix(string(res.Stdout), "end\n") {
		t.Fatalf("got %d bytes, %v; want the last %d", len(res.Stdout), err, MaxCapture)
	}
}

func TestCommandTextIsPasteable(t *testing.T) {
	t.Parallel()
	argv := []string{"printf", "%s|", "a b", "it's", "$HOME", "", "plain", "new\nline", "*"}
	text := Cmd{Argv: argv}.String()
	res, err := System{}.Run(t.Context(), Cmd{Argv: []string{"sh", "-c", text}, Env: pathEnv})
	if err != nil || string(res.Stdout) != strings.Join(argv[2:], "|")+"|" {
		t.Fatalf("%s gave %q, %v", text, res.Stdout, err)
	}
}

func TestRecordThenReplay(t *testing.T) {
	t.Parallel()
	rec := &Recorder{Runner: System{}}
	cmds := []Cmd{
		{Argv: []string{"sh", "-c", "echo one"}, Env: pathEnv},
		{Argv: []string{"sh", "-c", "echo bad >&2; exit 3"}, Env: pathEnv},
	}
	for _, c := range cmds {
		_, _ = rec.Run(t.Context(), c)
	}
	rep := NewReplay(rec.Exchanges())
	res, err := rep.Run(t.Context(), cmds[1])
	if err == nil || res.Code != 3 || string(res.Stderr) != "bad\n" {
		t.Errorf("got %d %q %v", res.Code, res.Stderr, err)
	}
	if got := rep.Unused(); len(got) != 1 || !strings.Contains(got[0], "echo one") {
		t.Errorf("unused: %q", got)
	}
	if _, err := rep.Run(t.Context(), Cmd{Argv: []string{"other"}}); err == nil {
		t.Error("a command that was not recorded was answered")
	}
}

func waitFor(t *testing.T, path string) {
	t.Helper()
	for range 500 {
		if _, err := os.Stat(path); err == nil {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("%s did not appear", path)
}

// alive reports whether pid runs; a zombie does not.
func alive(pid int) bool {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err == nil && !strings.Contains(string(b), ") Z ")
}
