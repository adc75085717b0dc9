package invar

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/invar-ops/invar/internal/install"
	"github.com/invar-ops/invar/internal/plan"
	"github.com/invar-ops/invar/internal/probe"
	"github.com/invar-ops/invar/internal/report"
)

// deepest is the level that a build asks for: all of them. A level that this
// host cannot run is skipped with its reason.
const deepest = 7

// upToDate reports whether the current generation is what p would make, and is
// still whole (level 1). It starts no Python.
func (s Session) upToDate(ctx context.Context, p plan.Plan, o Options) (BuildResult, bool) {
	if o.Force || p.Recipe != nil || p.Fingerprint == "" {
		return BuildResult{}, false
	}
	prefix, err := install.Open(s.Prefix)
	if err != nil {
		return BuildResult{}, false
	}
	r, err := prefix.Current(p.Python.ID())
	if err != nil || r.Fingerprint != p.Fingerprint || r.Target != p.Target {
		return BuildResult{}, false
	}
	var saved savedProbe
	if prefix.Probe(r, &saved) != nil || saved.Failed {
		return BuildResult{}, false
	}
	look := s.probeOptions(p, 1, report.Discard)
	look.Seen = true
	res, err := probe.Run(ctx, look)
	if err != nil {
		s.Progress.Note(fmt.Sprintf("installed generation %d is not whole (%v); building again", r.Generation, err))
		return BuildResult{}, false
	}
	return BuildResult{
		Target: p.Target, Why: p.Why, UpToDate: true, Receipt: r, Probe: &res, Probed: saved.At,
	}, true
}

// A savedProbe is what lies beside a receipt.
type savedProbe struct {
	At     time.Time    `json:"at"`
	Failed bool         `json:"failed"`
	Result probe.Result `json:"result"`
}

func (s Session) probeOptions(p plan.Plan, level int, progress report.Progress) probe.Options {
	return probe.Options{
		Prefix: s.Prefix, Python: p.Python.Exe, Target: p.Target, Level: level,
		Runner: s.Runner, Env: s.Env, Progress: progress,
	}
}

// prove probes the new generation as deep as this host can. A failed probe
// takes it back: the generation before it is current again.
func (s Session) prove(ctx context.Context, prefix *install.Prefix, p plan.Plan, res *BuildResult) error {
	o := s.probeOptions(p, deepest, s.Progress)
	o.Seen = true // everything is new and read; what is read is remembered for the next build
	r, err := probe.Run(ctx, o)
	res.Probe, res.Probed = &r, time.Now().UTC().Truncate(time.Second)
	if err == nil {
		return prefix.SaveProbe(res.Receipt, savedProbe{At: res.Probed, Result: r})
	}
	if ctx.Err() != nil {
		// Interrupted: the generation is whole but unproved; the next build proves it.
		return withState(report.Problemf(report.Failed, "probe: %w", err),
			fmt.Sprintf("generation %d is installed and was not probed to the end", res.Receipt.Generation))
	}
	return s.takeBack(ctx, prefix, p, res, err)
}

func (s Session) takeBack(ctx context.Context, prefix *install.Prefix, p plan.Plan, res *BuildResult, cause error) error {
	failed := res.Receipt.Generation
	saveErr := prefix.SaveProbe(res.Receipt, savedProbe{At: res.Probed, Failed: true, Result: *res.Probe})
	_, err := prefix.TakeBack(ctx, res.Receipt)
	state := fmt.Sprintf("generation %d was taken back", failed)
	switch now, cerr := prefix.Current(p.Python.ID()); {
	case err != nil:
		state = fmt.Sprintf("generation %d could not be taken back: %v", failed, err)
	case cerr == nil:
		state += fmt.Sprintf("; generation %d is active", now.Generation)
	case errors.Is(cerr, fs.ErrNotExist):
		state += "; nothing is installed"
	}
	if pr, ok := errors.AsType[*report.Problem](cause); ok {
		pr.State = state
		return errors.Join(cause, saveErr)
	}
	pr := report.Problemf(report.CheckFailed, "%w", cause)
	pr.State = state
	return errors.Join(pr, saveErr)
}
