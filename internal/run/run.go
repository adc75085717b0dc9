// Package run is the only package that starts processes. A process gets its
// own group, an explicit environment and no stdin; when the context ends the
// whole group gets SIGTERM, then SIGKILL. Output goes to a log file and a
// bounded tail, so that a chatty compiler costs no memory.
package run

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// Grace is how long a group may clean up after SIGTERM before SIGKILL.
const Grace = 5 * time.Second

// MaxCapture bounds what is kept of each stream in memory, in bytes.
const MaxCapture = 4 << 20

// A Cmd says what to start. Nothing is inherited but what is named here.
type Cmd struct {
	Argv    []string      // program and arguments; no shell ever sees them
	Dir     string        // working directory; empty is the caller's
	Env     []string      // complete environment as KEY=VALUE; nil starts with none
	Stdin   io.Reader     // nil is /dev/null
	Log     string        // file to append stdout and stderr to; empty keeps the tail only
	Output  io.Writer     // also receives both streams as they come; may be nil
	Timeout time.Duration // 0 is none
	Confine *Confine      // nil is as this process
}

// A Result is how a process ended.
type Result struct {
	Code    int            // exit code; -1 when a signal ended it
	Signal  syscall.Signal // the signal, or 0
	Stdout  []byte         // at most the last MaxCapture bytes
	Stderr  []byte         // at most the last MaxCapture bytes
	Elapsed time.Duration
	// Confined is what of Cmd.Confine the kernel enforced.
	Confined Confined
}

// A Runner starts processes. System does; Recorder and Replay stand in tests.
type Runner interface {
	Run(ctx context.Context, cmd Cmd) (Result, error)
}

// System starts real processes.
type System struct{}

var _ Runner = System{}

// Run starts cmd and waits. A non-zero exit, a signal, a time-out and a
// program that cannot be started are all an *Error.
func (System) Run(ctx context.Context, cmd Cmd) (Result, error) {
	if len(cmd.Argv) == 0 {
		return Result{}, errors.New("empty command")
	}
	if cmd.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, cmd.Timeout, &TimeoutError{cmd.Timeout})
		defer cancel()
	}
	c, err := prepare(ctx, cmd)
	if err != nil {
		return Result{}, &Error{Cmd: cmd, Err: err}
	}
	out, errOut, closeLog, err := streams(c, cmd)
	if err != nil {
		return Result{}, &Error{Cmd: cmd, Err: err}
	}
	defer closeLog()
	start := time.Now()
	confined, err := begin(c, cmd)
	if err == nil {
		err = c.Wait()
	}
	if c.Process != nil {
		// The leader is gone; whatever it left behind in its group goes too.
		_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL)
	}
	res := Result{Elapsed: time.Since(start), Stdout: out.bytes(), Stderr: errOut.bytes(), Confined: confined}
	if c.ProcessState != nil {
		res.Code = c.ProcessState.ExitCode()
		if ws, ok := c.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
			res.Signal = ws.Signal()
		}
	}
	if ctx.Err() != nil {
		return res, &Error{Cmd: cmd, Result: res, Err: context.Cause(ctx)}
	}
	if err != nil {
		return res, &Error{Cmd: cmd, Result: res, Err: err}
	}
	return res, nil
}

func begin(c *exec.Cmd, cmd Cmd) (Confined, error) {
	if cmd.Confine != nil {
		return startConfined(c, *cmd.Confine)
	}
	return Confined{}, c.Start()
}

func prepare(ctx context.Context, cmd Cmd) (*exec.Cmd, error) {
	prog, err := lookPath(cmd.Argv[0], cmd.Env, cmd.Dir)
	if err != nil {
		return nil, err
	}
	c := exec.CommandContext(ctx, prog, cmd.Argv[1:]...)
	c.Args[0] = cmd.Argv[0]
	c.Dir, c.Stdin = cmd.Dir, cmd.Stdin
	c.Env = append([]string{}, cmd.Env...)
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGTERM) }
	c.WaitDelay = Grace
	return c, nil
}

func streams(c *exec.Cmd, cmd Cmd) (out, errOut *tail, closeLog func(), err error) {
	out, errOut, closeLog = newTail(MaxCapture), newTail(MaxCapture), func() {}
	ws := []io.Writer{}
	if cmd.Log != "" {
		f, err := os.OpenFile(cmd.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		if err != nil {
			return nil, nil, nil, err
		}
		_, err = io.WriteString(f, "$ "+cmd.String()+"\n")
		if err != nil {
			_ = f.Close()
			return nil, nil, nil, err
		}
		ws, closeLog = append(ws, f), func() { _ = f.Close() }
	}
	if cmd.Output != nil {
		ws = append(ws, cmd.Output)
	}
	shared := &locked{w: io.MultiWriter(ws...)}
	c.Stdout, c.Stderr = io.MultiWriter(out, shared), io.MultiWriter(errOut, shared)
	return out, errOut, closeLog, nil
}

// Has reports whether name can be started with the PATH in env.
func Has(name string, env []string) bool {
	_, err := lookPath(name, env, "")
	return err == nil
}

// LookPath finds name in the PATH of env, as a process with env would.
func LookPath(name string, env []string) (string, error) { return lookPath(name, env, "") }

func lookPath(name string, env []string, dir string) (string, error) {
	if strings.Contains(name, "/") {
		if !strings.HasPrefix(name, "/") && dir != "" {
			return name, nil
		}
		return name, executable(name)
	}
	for d := range strings.SplitSeq(Getenv(env, "PATH"), ":") {
		if d == "" {
			continue
		}
		p := d + "/" + name
		if executable(p) == nil {
			return p, nil
		}
	}
	return "", &exec.Error{Name: name, Err: exec.ErrNotFound}
}

func executable(path string) error {
	st, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case st.IsDir() || st.Mode()&0o111 == 0:
		return &os.PathError{Op: "exec", Path: path, Err: os.ErrPermission}
	}
	return nil
}
