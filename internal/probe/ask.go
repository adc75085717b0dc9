package probe

import (
	"context"
	"errors"
	"time"

	"github.com/invar-ops/invar/internal/install"
	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/run"
)

// Locate finds the receipt of the installation that o means.
func Locate(ctx context.Context, o Options) (install.Receipt, error) {
	return (&prober{Options: o}).locate(ctx)
}

// Ask starts the embedded scripts once in o.Python with one request and decodes
// the answer. A process that gives none is a Problem with the end of what it said.
func Ask(ctx context.Context, o Options, request, answer any, limit time.Duration, progress func(done, total int64)) error {
	s, err := newSession(o.Python, o.Env, o.Runner)
	if err != nil {
		return err
	}
	defer s.close()
	err = s.ask(ctx, request, answer, limit, progress)
	if d, ok := errors.AsType[*died](err); ok {
		p := report.Problemf(report.Failed, "%s gave no answer: %w", o.Python, d.Err)
		p.Tail = run.LastLines(d.Stderr, 12)
		return p
	}
	return err
}

// A CaseFacts is what a sweep found about one operator, dtype and shape.
type CaseFacts = caseFacts

// Vacuous lists why a case without a difference proves nothing.
func Vacuous(c CaseFacts) []string { return vacuous(c) }
