// Command invar builds, installs and proves batch-invariant operators.
package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"

	"github.com/invar-ops/invar/internal/report"
)

func main() {
	os.Exit(mainCode())
}

// mainCode is main without the exit, for tests that run the command in-process.
func mainCode() int {
	ctx, stop := interruptible()
	defer stop()
	err := execute(ctx, os.Args)
	return finish(ctx, err)
}

// A signalError is the cause of a context that a signal ended.
type signalError struct{ sig os.Signal }

func (e signalError) Error() string { return e.sig.String() }

// interruptible ends the context on the first SIGINT or SIGTERM and remembers
// which; a second one kills, for people who will not wait for the clean-up.
func interruptible() (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	ch := make(chan os.Signal, 1)
	signal.Notify(ch, os.Interrupt, syscall.SIGTERM)
	go func() {
		s, ok := <-ch
		if !ok {
			return
		}
		signal.Stop(ch)
		cancel(signalError{s})
	}()
	return ctx, func() { signal.Stop(ch); close(ch); cancel(nil) }
}

// finish turns the outcome into the exit code; a signal goes first, since the
// error is then only its echo.
func finish(ctx context.Context, err error) int {
	if s, ok := errors.AsType[signalError](context.Cause(ctx)); ok && err != nil {
		if s.sig == syscall.SIGTERM {
			return report.Terminated
		}
		return report.Interrupted
	}
	return report.ExitCode(err)
}
