// Package probe says how good an installation is, level by level: from files
// on disk to bitwise batch invariance. Facts come from the receipt, from ELF
// files and from scripts that run in the Python in question; the judgement is
// made here. It changes nothing.
package probe

import (
	"context"
	"time"

	"github.com/invar-ops/invar/internal/imagefs"
	"github.com/invar-ops/invar/internal/install"
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
