package run

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
)

// Attach runs cmd on the caller's terminal: same standard streams, same
// process group, so that bars, Ctrl-C and job control work as if the user had
// started it. It returns the exit code, 128+n when signal n ended the process.
// SIGTERM is passed on; SIGINT reaches the child through the terminal.
func Attach(ctx context.Context, cmd Cmd) (int, error) {
	prog, err := lookPath(cmd.Argv[0], cmd.Env, cmd.Dir)
	if err != nil {
		return -1, &Error{Cmd: cmd, Err: err}
	}
	c := exec.Command(prog, cmd.Argv[1:]...) //nolint:noctx // ctx is handled below: it must not kill, but pass on
	c.Dir, c.Env = cmd.Dir, append([]string{}, cmd.Env...)
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	sigs := make(chan os.Signal, 4)
	signal.Notify(sigs, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(sigs)
	if err := c.Start(); err != nil {
		return -1, &Error{Cmd: cmd, Err: err}
	}
	done := make(chan error, 1)
	go func() { done <- c.Wait() }()
	ended := ctx.Done()
	for {
		select {
		case s := <-sigs:
			if s == syscall.SIGTERM {
				_ = c.Process.Signal(s)
			}
		case <-ended:
			// mage cancels its context on Ctrl-C, which the child got as well.
			ended = nil
		case err := <-done:
			return attachCode(cmd, c, err)
		}
	}
}

func attachCode(cmd Cmd, c *exec.Cmd, err error) (int, error) {
	if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		return -1, &Error{Cmd: cmd, Err: err}
	}
	if ws, ok := c.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int(ws.Signal()), nil
	}
	return c.ProcessState.ExitCode(), nil
}
