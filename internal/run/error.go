package run

import (
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"
)

// An Error is a process that did not do its work. It carries the command as
// text that can be pasted into a shell.
type Error struct {
	Cmd    Cmd
	Result Result
	Err    error
}

func (e *Error) Error() string {
	name := "command"
	if len(e.Cmd.Argv) > 0 {
		name = e.Cmd.Argv[0]
	}
	if _, ok := errors.AsType[*exec.ExitError](e.Err); ok {
		if e.Result.Signal != 0 {
			return fmt.Sprintf("%s was killed (signal %d, %s)", name, int(e.Result.Signal), e.Result.Signal)
		}
		return fmt.Sprintf("%s ended with exit code %d", name, e.Result.Code)
	}
	return fmt.Sprintf("%s: %v", name, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// Tail is the last n lines of what the process wrote, stderr first choice.
func (e *Error) Tail(n int) string {
	text := e.Result.Stderr
	if len(strings.TrimSpace(string(text))) == 0 {
		text = e.Result.Stdout
	}
	return LastLines(string(text), n)
}

// NotFound reports whether err says that the program does not exist.
func NotFound(err error) bool { return errors.Is(err, exec.ErrNotFound) }

// A TimeoutError is the cause when Cmd.Timeout ended a process.
type TimeoutError struct{ After time.Duration }

func (e *TimeoutError) Error() string { return fmt.Sprintf("no answer within %s", e.After) }

// LastLines is the last n non-empty-ended lines of text.
func LastLines(text string, n int) string {
	lines := strings.Split(strings.TrimRight(text, "\r\n \t"), "\n")
	if len(lines) > n {
		lines = lines[len(lines)-n:]
	}
	return strings.Join(lines, "\n")
}
