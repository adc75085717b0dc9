// Package probe says how good an installation is, level by level: from files
// on disk to bitwise batch invariance. Facts come from the receipt, from ELF
// files and from scripts that run in the Python in question; the judgement is
// made here. It changes nothing.
package probe

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/invar-ops/invar/internal/imagefs"
	"github.com/invar-ops/invar/internal/install"
	"github.com/invar-ops/invar/internal/released"
	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/rootfs"
	"github.com/invar-ops/invar/internal/run"
	"github.com/invar-ops/invar/internal/target"
)

// Options say what to probe and how deep.
type Options struct {
	Prefix   string // home of invar
	Python   string // interpreter, environment folder or id; empty is the only one the prefix serves
	Target   string // expected target; empty takes the receipt's
	Level    int    // deepest level to run; 0 is all
	Require  int    // levels that must pass, 1 to Require
	Full     bool   // the long sweep at level 7
	Seen     bool   // level 1 does not read files again that look as they did when they were last read
	Runner   run.Runner
	Env      []string // of the probed process, as the user has it
	CANN     string   // another CANN than that of the build; "" is that one
	Progress report.Progress

	// Root is where the installation lies, as seen from this machine. In another
	// root than this machine's nothing is started: see outside.go. Env is then
	// that of a process in that root, and an empty Prefix is looked for.
	Root rootfs.Root
	// Image is what Root was unpacked from, nil for a plain root.
	Image *imagefs.Image
}

// A Result is what a probe found. Checks hold every question and answer.
type Result struct {
	Target       string         `json:"target"`
	Root         string         `json:"root,omitempty"` // that Prefix and Python are paths in, when it is not this machine's
	Prefix       string         `json:"prefix"`
	Python       string         `json:"python"`
	Generation   int            `json:"generation"`
	Image        *imagefs.Image `json:"image,omitempty"`     // that was unpacked and looked at
	Asked        int            `json:"asked"`               // deepest level that was asked for
	Proved       int            `json:"proved"`              // levels 1 to Proved all passed
	Simulated    string         `json:"simulated,omitempty"` // the device of levels 6 and 7 is none; they say nothing about hardware
	Levels       []Level        `json:"levels"`
	Checks       []report.Check `json:"checks"`
	Installed    Baseline       `json:"installed"`          // what was probed, as a baseline
	Coverage     *Coverage      `json:"coverage,omitempty"` // what level 7 went through
	Summary      []string       `json:"summary"`            // a few lines for people
	Observations []Observation  `json:"observations,omitempty"`
	Elapsed      time.Duration  `json:"elapsed_ns"`
}

// An Observation is shown beside the verdict and never part of it.
type Observation struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// Run probes the installation. The error says with which exit code a program
// should end (report.ExitCode): 5 when a level failed, 6 when one was
// inconclusive or when a required one was skipped. The Result is complete
// either way, except when ctx ended.
func Run(ctx context.Context, o Options) (Result, error) {
	start := time.Now()
	if o.Level == 0 {
		o.Level = max(Deepest, o.Require)
	}
	if o.Level < 1 || o.Level > Deepest || o.Require < 0 || o.Require > o.Level {
		return Result{}, report.Usagef("levels go from 1 to %d, and what is required must be run: level %d, require %d", Deepest, o.Level, o.Require)
	}
	if o.Progress == nil {
		o.Progress = report.Discard
	}
	if o.Target != "" {
		if _, err := target.Find(o.Target); err != nil {
			return Result{}, err
		}
	}
	p := &prober{Options: o}
	r, err := p.locate(ctx)
	if err != nil {
		return Result{}, err
	}
	t, err := target.Find(r.Target)
	if err != nil {
		return Result{}, err
	}
	p.receipt, p.target = r, t
	if err := p.environ(ctx); err != nil {
		return Result{}, err
	}
	res := Result{Target: r.Target, Prefix: p.Prefix, Python: r.Python.Exe, Generation: r.Generation, Asked: o.Level}
	if p.outside() {
		res.Root, res.Image, p.machine = o.Root.Dir(), o.Image, p.archOfRoot()
	}
	if o.Image != nil {
		res.Root = "" // a temporary folder
	}
	if err := p.levels(ctx, &res); err != nil {
		return res, err
	}
	res.Proved = proved(res.Levels)
	if res.Simulated = p.simulated(); res.Simulated != "" {
		res.Proved = min(res.Proved, Kernels)
	}
	res.Installed = BaselineOf(r, res)
	res.Observations = p.observations()
	res.Summary = summarize(res)
	res.Elapsed = time.Since(start)
	return res, verdict(res, o.Require)
}

// A prober runs the levels of one installation.
type prober struct {
	Options
	receipt install.Receipt
	target  target.Target
	machine string // architecture of another root
	cann    string // version of CANN in its environment, "" where there is none

	session   *session            // Python processes, once level 2 was reached
	measuring *measurement        // their process for levels 6 and 7
	facts     *facts              // what levels 2 to 5 judge
	measured  *measured           // what levels 6 and 7 judge
	coverage  *Coverage           // of level 7
	extra     []Observation       // found on the way
	steps     map[int]report.Step // announced and not yet ended
	plan      Schedule            // of levels 6 and 7
	uncovered []string            // operators that no line of it calls
	gpu       *gpuState           // of the host, once it was asked
}

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

// verdict turns the levels into the error of the probe.
func verdict(res Result, require int) error {
	if res.Simulated != "" && require > Kernels && len(res.Levels) >= require {
		return onSimulated(res, require)
	}
	for _, bad := range []report.Status{report.Fail, report.Unclear, report.Skip} {
		for _, l := range res.Levels {
			if l.Status != bad || bad == report.Skip && l.Level > require {
				continue
			}
			return problem(res, l)
		}
	}
	return nil
}

func problem(res Result, l Level) error {
	words := map[report.Status]string{report.Fail: "failed", report.Unclear: "is inconclusive", report.Skip: "was skipped and is required"}
	code := report.Inconclusive
	if l.Status == report.Fail {
		code = report.CheckFailed
	}
	p := report.Problemf(code, "probe level %d (%s) %s", l.Level, l.Name, words[l.Status])
	for _, c := range res.Checks {
		if c.Level == l.Level && c.Status == l.Status {
			p.Want, p.Got, p.Hint = c.Want, c.Got, c.Hint
			if c.Reason != "" {
				p.Got = c.Reason
			}
			p.Err = fmt.Errorf("%w: %s", p.Err, c.Name)
			break
		}
	}
	return p
}
