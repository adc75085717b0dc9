package build

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/invar-ops/invar/internal/explain"
	"github.com/invar-ops/invar/internal/plan"
	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/run"
)

var errSpec = errors.New("the plan's step has no specification")

// problem turns the failure of a step into one that a person can act on: which
// stage, the last lines, the log and, where a rule matches, cause and fix.
func (b *Builder) problem(s plan.Step, err error) error {
	if contextEnded(err) {
		return err
	}
	re, ok := errors.AsType[*run.Error](err)
	if !ok {
		inner, ok := errors.AsType[*report.Problem](err)
		if ok && inner.Code != 0 && inner.Code != report.Failed {
			return err
		}
		p := report.Problemf(report.BuildFailed, "%s failed at %s: %w", s.Stage, s.ID, err)
		if ok { // its text says what was wanted; the way out goes along
			p.Hint, p.Log, p.Tail = inner.Hint, inner.Log, inner.Tail
		}
		return p
	}
	p := report.Problemf(report.BuildFailed, "%s failed: %w at %s", s.Stage, err, s.ID) // the id as in the plan
	p.Log, p.Tail = b.log(s), re.Tail(12)
	Diagnose(p, p.Log)
	if p.Rule == DiskFull {
		b.full(p)
	}
	if p.Cause == "" && killed(err) {
		p.Cause = fmt.Sprintf("the kernel killed it, most often because memory ran out (alone, after %d at a time)", b.jobs)
		p.Hint = "give the machine or the container more memory"
	}
	return p
}

// DiskFull is explain's rule for a full file system.
const DiskFull = "disk-full"

// full names the place: everything that a step writes, scratch files too, is
// below the prefix.
func (b *Builder) full(p *report.Problem) {
	p.Cause = "the file system of the prefix " + b.plan.Prefix + " is full, or a quota on it is used up"
	p.Hint = "free some space: invar gc; or choose another place: invar build --prefix DIR"
}

// Diagnose adds what explain's rules know about the log to p.
func Diagnose(p *report.Problem, log string) {
	f, err := os.Open(log)
	if err != nil {
		return
	}
	defer func() { _ = f.Close() }()
	d, err := explain.Log(context.Background(), f, explain.Options{})
	if err != nil || d.Verdict != explain.Found {
		return
	}
	p.Cause, p.Rule, p.Hint = d.Cause, d.Rule, d.Hint()
}
