package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/run"
)

// Output rules of this package: stdout is the result and nothing else; errors,
// hints and progress go to stderr; the prefix is "invar:", text is lower case
// without a full stop; colour marks verdict words only.

// showError prints err with its way out.
func showError(ctx context.Context, w io.Writer, err error) {
	if _, ok := errors.AsType[silent](err); ok {
		return
	}
	if s, ok := errors.AsType[signalError](context.Cause(ctx)); ok {
		state := "nothing was changed"
		if p, ok := errors.AsType[*report.Problem](err); ok && p.State != "" {
			state = p.State
		}
		fmt.Fprintf(w, "invar: %s: %s; temporary files were removed\n", s.sig, state)
		return
	}
	if u, ok := errors.AsType[*report.UnmetError](err); ok {
		showUnmet(w, u)
		return
	}
	p, ok := errors.AsType[*report.Problem](err)
	if !ok {
		fmt.Fprintf(w, "invar: error: %v\n", err)
		return
	}
	fmt.Fprintf(w, "invar: error: %v\n", err)
	for _, row := range [][2]string{
		{"cause", p.Cause}, {"rule", p.Rule}, {"try", p.Hint}, {"log", p.Log},
	} {
		if row[1] != "" {
			fmt.Fprintf(w, "  %-7s %s\n", row[0], strings.ReplaceAll(row[1], "\n", "\n          "))
		}
	}
	if p.Tail != "" {
		fmt.Fprintf(w, "  last lines:\n    %s\n", strings.ReplaceAll(p.Tail, "\n", "\n    "))
	}
	if p.State != "" {
		fmt.Fprintln(w, p.State)
	}
}

// wide is the width up to which what is wanted stands in a column of its own.
const wide = 40

func showUnmet(w io.Writer, u *report.UnmetError) {
	fmt.Fprintf(w, "invar: error: %v\n", u)
	unmet := u.Unmet()
	name, want := 0, 0
	for _, r := range unmet {
		name = max(name, len(r.Name))
		if len(r.Want) <= wide {
			want = max(want, len(or(r.Want, "it")))
		}
	}
	for _, r := range unmet {
		fmt.Fprintf(w, "  %-*s  want %-*s", name, r.Name, want, or(r.Want, "it"))
		if len(r.Want) > wide { // too wide for a column: what was found goes below
			fmt.Fprintf(w, "\n  %-*s", name, "")
		}
		fmt.Fprintf(w, "  got %s\n", or(r.Got, "nothing"))
		if r.Hint != "" {
			fmt.Fprintf(w, "  %-*s  %s\n", name, "", r.Hint)
		}
	}
	fmt.Fprintf(w, "nothing was changed. all requirements: invar doctor %s\n", u.Target)
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// An output is stdout that remembers the first error of writing to it, as on a
// full disk: printing functions need not pass it on.
type output struct {
	*os.File
	err error
}

func (o *output) Write(b []byte) (int, error) {
	n, err := o.File.Write(b)
	if o.err == nil {
		o.err = err
	}
	return n, err
}

// terminal reports whether w is a terminal that takes cursor movement.
func terminal(w io.Writer) bool {
	if o, ok := w.(*output); ok {
		w = o.File
	}
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb" && os.Getenv("CI") == ""
}

// paint puts a verdict word in colour, where colour is wanted.
func paint(w io.Writer, word, text string) string {
	if !terminal(w) || os.Getenv("NO_COLOR") != "" {
		return text
	}
	code := map[string]string{"pass": "32", "fail": "31", "error": "31", "skip": "33", "inconclusive": "33"}[word]
	if code == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// size is a number of bytes for people.
func size(n int64) string {
	const unit = 1000
	switch {
	case n < unit:
		return fmt.Sprintf("%d B", n)
	case n < unit*unit:
		return fmt.Sprintf("%.0f kB", float64(n)/unit)
	case n < unit*unit*unit:
		return fmt.Sprintf("%.0f MB", float64(n)/unit/unit)
	}
	return fmt.Sprintf("%.1f GB", float64(n)/unit/unit/unit)
}

// commandText is argv as pasteable text.
func commandText(argv []string) string { return run.Cmd{Argv: argv}.String() }
