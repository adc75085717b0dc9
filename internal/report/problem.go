package report

import (
	"errors"
	"fmt"
	"strings"
)

// A Problem is an error that a person can act on: what was found, what was
// expected and what to do, with the exit code that belongs to it.
type Problem struct {
	Err   error  // what happened; never nil
	Want  string // what was expected
	Got   string // what was found
	Cause string // a diagnosis, when a rule of explain matched
	Rule  string // id of that rule
	Hint  string // what to do; a command that can be pasted where there is one
	Log   string // path of the full output
	Tail  string // last lines of that output
	State string // what the failure left: "nothing was changed", "generation 3 stays active"
	Code  int    // exit code; 0 counts as Failed
}

func (p *Problem) Error() string {
	var b strings.Builder
	b.WriteString(p.Err.Error())
	if p.Want != "" {
		fmt.Fprintf(&b, "; want %s", p.Want)
	}
	if p.Got != "" {
		fmt.Fprintf(&b, ", got %s", p.Got)
	}
	return b.String()
}

func (p *Problem) Unwrap() error { return p.Err }

// Problemf makes a Problem with an exit code and a formatted error text; %w works.
func Problemf(code int, format string, args ...any) *Problem {
	return &Problem{Err: fmt.Errorf(format, args...), Code: code}
}

// WithHint sets the hint and returns p, so that a return statement can hold it.
func (p *Problem) WithHint(format string, args ...any) *Problem {
	p.Hint = fmt.Sprintf(format, args...)
	return p
}

// WithWant sets what was expected and what was found and returns p.
func (p *Problem) WithWant(want, got string) *Problem {
	p.Want, p.Got = want, got
	return p
}

// Usagef is a Problem with exit code 2.
func Usagef(format string, args ...any) *Problem { return Problemf(Usage, format, args...) }

// An UnmetError carries every requirement that failed, never only the first.
type UnmetError struct {
	Target string
	All    []Requirement
}

// Unmet lists the requirements that do not hold.
func (e *UnmetError) Unmet() []Requirement {
	var out []Requirement
	for _, r := range e.All {
		if !r.OK {
			out = append(out, r)
		}
	}
	return out
}

func (e *UnmetError) Error() string {
	return fmt.Sprintf("this host does not meet %s: %d of %d requirements", e.Target, len(e.Unmet()), len(e.All))
}

// ExitCode says with which code a program should end for err.
func ExitCode(err error) int {
	if err == nil {
		return Done
	}
	if _, ok := errors.AsType[*UnmetError](err); ok {
		return Unmet
	}
	if p, ok := errors.AsType[*Problem](err); ok && p.Code != 0 {
		return p.Code
	}
	return Failed
}
