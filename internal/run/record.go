package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"
)

// An Exchange is one recorded process.
type Exchange struct {
	Argv   []string `json:"argv"`
	Code   int      `json:"code"`
	Signal int      `json:"signal,omitempty"`
	Stdout string   `json:"stdout,omitempty"`
	Stderr string   `json:"stderr,omitempty"`
	Err    string   `json:"error,omitempty"` // why it could not be started or finished
}

// A Recorder runs commands with another Runner and keeps what they said.
type Recorder struct {
	Runner Runner

	mu        sync.Mutex
	exchanges []Exchange
}

// Run passes cmd on and records it.
func (r *Recorder) Run(ctx context.Context, cmd Cmd) (Result, error) {
	res, err := r.Runner.Run(ctx, cmd)
	x := Exchange{
		Argv: cmd.Argv, Code: res.Code, Signal: int(res.Signal),
		Stdout: string(res.Stdout), Stderr: string(res.Stderr),
	}
	if err != nil {
		x.Err = err.Error()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.exchanges = append(r.exchanges, x)
	return res, err
}

// Exchanges is what was recorded, sorted by command.
func (r *Recorder) Exchanges() []Exchange {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := slices.Clone(r.exchanges)
	slices.SortStableFunc(out, func(a, b Exchange) int { return slices.Compare(a.Argv, b.Argv) })
	return out
}

// Replay answers commands from exchanges. A command that was not recorded is
// an error; Unused lists the answers that nobody asked for.
type Replay struct {
	mu   sync.Mutex
	left map[string][]Exchange
	used map[string]bool
}

// NewReplay makes a Replay of exchanges.
func NewReplay(exchanges []Exchange) *Replay {
	r := &Replay{left: map[string][]Exchange{}, used: map[string]bool{}}
	for _, x := range exchanges {
		k := strings.Join(x.Argv, "\x00")
		r.left[k] = append(r.left[k], x)
	}
	return r
}

// Run answers cmd. Several answers to one command come in order; the last one stays.
func (r *Replay) Run(_ context.Context, cmd Cmd) (Result, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	k := strings.Join(cmd.Argv, "\x00")
	xs := r.left[k]
	if len(xs) == 0 {
		return Result{}, &Error{Cmd: cmd, Err: fmt.Errorf("not recorded: %s", cmd.String())}
	}
	r.used[k] = true
	if len(xs) > 1 {
		r.left[k] = xs[1:]
	}
	x := xs[0]
	res := Result{Code: x.Code, Signal: syscall.Signal(x.Signal), Stdout: []byte(x.Stdout), Stderr: []byte(x.Stderr)}
	if x.Err != "" || x.Code != 0 {
		text := x.Err
		if text == "" {
			text = fmt.Sprintf("exit code %d", x.Code)
		}
		return res, &Error{Cmd: cmd, Result: res, Err: errors.New(text)}
	}
	return res, nil
}

// Unused lists the recorded commands that were never asked for.
func (r *Replay) Unused() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	for k := range r.left {
		if !r.used[k] {
			out = append(out, strings.ReplaceAll(k, "\x00", " "))
		}
	}
	slices.Sort(out)
	return out
}
