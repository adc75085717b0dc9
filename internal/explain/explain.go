// Package explain finds the first real cause in the log of a failed build,
// installation, import or server start, and says what to do about it.
//
// The knowledge is in rules/*.yaml. A log is read once, as a stream: its text
// goes through one automaton of all literals that the rules need, and only
// lines that hold one of them meet an expression. Memory is constant and time
// is linear in the size of the log, whatever it holds.
package explain

import (
	"context"
	"fmt"
	"io"

	"github.com/invar-ops/invar/internal/divergence"
)

// Options change how a log is read.
type Options struct {
	// Known are values for placeholders that the caller knows better than the
	// log: jobs, memory, soc. A value from the log wins.
	Known map[string]string
}

// Log reads all of r and says what went wrong in it. The error is about
// reading r or about the rules; a log without a cause is no error.
func Log(ctx context.Context, r io.Reader, opts Options) (Diagnosis, error) {
	set, err := loadSet()
	if err != nil {
		return Diagnosis{}, fmt.Errorf("rules of explain: %w", err)
	}
	return set.log(ctx, r, opts)
}

func (s *set) log(ctx context.Context, r io.Reader, opts Options) (Diagnosis, error) {
	r, own, err := sniff(r)
	if err != nil {
		return Diagnosis{}, err
	}
	sc := newScanner(s)
	var compared divergence.Scanner // answers that another harness compared
	if err := sc.read(ctx, io.TeeReader(r, &compared)); err != nil {
		return Diagnosis{}, err
	}
	d := sc.judge(opts.Known)
	if d.Verdict != Found {
		diverged(&d, compared.Report())
	}
	if own != nil {
		own.complete(&d)
	}
	return d, nil
}
