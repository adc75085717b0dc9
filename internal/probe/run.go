package probe

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/invar-ops/invar/internal/released"
	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/target"
)

func (p *prober) levels(ctx context.Context, res *Result) error {
	defer func() {
		p.measuring.stop()
		p.session.close()
	}()
	run := map[int]func(context.Context) ([]report.Check, error){
		Files: p.files, Import: p.importing, Operators: p.operators, Wiring: p.wiring,
		Kernels: p.kernels, Numbers: p.numbers, Invariance: p.invariance,
	}
	if p.outside() {
		run[Files], run[Wiring], run[Kernels] = p.filesOutside, p.wiringOutside, p.kernelsOutside
	}
	if p.Image != nil {
		checks := p.image()
		res.Checks, res.Levels = checks, append(res.Levels, judge(OfImage, "image", checks, 0))
	}
	for level := 1; level <= p.Level; level++ {
		began, name := time.Now(), p.name(level)
		if level != Numbers {
			p.begin(level)
		}
		var checks []report.Check
		reason, err := p.cannot(ctx, level, res.Levels)
		if err != nil {
			return err
		}
		if reason != "" {
			checks = []report.Check{skipped(level, name, reason)}
		} else {
			var err error
			if checks, err = run[level](ctx); err != nil {
				p.begin(level).Fail(err)
				return err
			}
		}
		if p.outside() {
			insideRoot(checks)
		}
		l := judge(level, name, checks, p.took(level, time.Since(began)))
		res.Checks, res.Levels = append(res.Checks, checks...), append(res.Levels, l)
		finish(p.begin(level), l)
	}
	res.Coverage = p.coverage
	return nil
}

// environ makes Env that of a process with this installation.
func (p *prober) environ(ctx context.Context) error {
	of := func() (released.Environment, error) { return released.Of(ctx, p.Runner, p.receipt, p.CANN, p.Env) }
	if p.outside() {
		of = func() (released.Environment, error) { return released.In(p.Root, p.receipt, p.CANN, p.Env) }
	}
	env, err := of()
	if err == nil {
		p.Env, p.cann = env.Apply(p.Env, p.receipt), env.Choice.CANN.Version.String()
	}
	return err
}

// cannot says why level is not run: an earlier level, or the host.
func (p *prober) cannot(ctx context.Context, level int, done []Level) (string, error) {
	if p.outside() {
		return cannotOutside(level, done), nil
	}
	if reason := blocked(level, done); reason != "" {
		return reason, nil
	}
	return p.lacks(ctx, level)
}

// lacks says what of the host keeps level from being run.
func (p *prober) lacks(ctx context.Context, level int) (string, error) {
	i := slices.IndexFunc(p.target.Probe, func(l target.Level) bool { return l.Level == level })
	if i < 0 {
		return "target " + p.target.Name + " has no level " + fmt.Sprint(level), nil
	}
	n := p.target.Probe[i].Needs
	switch {
	case n == "":
		return "", nil
	case p.onNPU():
		return p.lacksNPU(level), nil
	case p.target.CUDA != nil:
		state, err := p.gpus(ctx)
		return state.missing, err
	}
	return "it needs " + n + ", which this version of invar cannot check for", nil
}

func (p *prober) name(level int) string {
	for _, l := range p.target.Probe {
		if l.Level == level {
			return l.Name
		}
	}
	return fmt.Sprintf("level %d", level)
}

// took is the time of a level. Levels 6 and 7 share a process, which started
// with level 2 and says itself what it spent on each.
func (p *prober) took(level int, waited time.Duration) time.Duration {
	switch {
	case p.measured == nil:
		return waited
	case level == Numbers:
		return time.Duration(p.measured.NumbersSeconds * float64(time.Second))
	case level == Invariance && p.measured.Invariance != nil:
		return time.Duration(p.measured.Invariance.Seconds * float64(time.Second))
	}
	return waited
}

// begin announces a level, once. Levels 6 and 7 come out of one process, and
// nearly all of its time belongs to level 7: that step starts with the wait for
// the process, the one of level 6 when it has answered.
func (p *prober) begin(level int) report.Step {
	if p.steps == nil {
		p.steps = map[int]report.Step{}
	}
	total := int64(0)
	if level >= Numbers {
		total = -1 // how much it is depends on the levels of the machine
	}
	if p.steps[level] == nil {
		p.steps[level] = p.Progress.Start("probe", fmt.Sprintf("%d %s", level, p.name(level)), total)
	}
	return p.steps[level]
}

func finish(step report.Step, l Level) {
	switch l.Status {
	case report.Pass:
		step.Done("")
	case report.Skip:
		step.Skip(l.Reason)
	default:
		step.Fail(errors.New(l.Reason))
	}
}
