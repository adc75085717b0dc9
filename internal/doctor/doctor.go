// Package doctor says before a build whether it will work here and what to do
// if not: every requirement of build, install and probe, the settings behind
// known failures, and what a container needs. Gather reads facts below a root;
// Judge is pure. Ranges are data (data/*.yaml), each with its source. No
// Python is started for what metadata tells.
package doctor

import (
	"context"
	"fmt"
	"strings"

	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/run"
	"github.com/invar-ops/invar/internal/target"
)

// Warn is the status of what does not stop a build and still bites later.
const Warn report.Status = "warn"

// A Finding is one question that was asked and the answer.
type Finding struct {
	ID     string        `json:"id"`     // stable: "cann-version"
	Group  string        `json:"group"`  // requirement, versions, environment or container
	For    string        `json:"for"`    // build, install, probe or serve
	Status report.Status `json:"status"` // pass, warn, fail or inconclusive
	report.Requirement
}

// Options say what to look at.
type Options struct {
	Root   string   // directory that is taken for "/"; empty is "/"
	Python string   // --python
	Prefix string   // where invar would install
	Dir    string   // source tree whose scripts are read; empty reads none
	Env    []string // of the process; ignored for another root
	// RootEnv is the environment that processes below another root have, such
	// as the ENV of its image; nil is not known.
	RootEnv []string
	SoCs    []string // what detection named
	Runner  run.Runner
}

// A Result is the whole answer for one target.
type Result struct {
	Target    string    `json:"target"`
	Title     string    `json:"title"`
	Why       string    `json:"why,omitempty"` // how the target was chosen
	Root      string    `json:"root"`
	System    string    `json:"system"`
	Findings  []Finding `json:"findings"`
	Install   string    `json:"install,omitempty"` // every missing package in one command
	Nearest   []Advice  `json:"nearest,omitempty"` // rows of the release matrix, nearest first
	Jobs      *Jobs     `json:"jobs,omitempty"`
	Container *RunFlags `json:"container,omitempty"`
	Facts     Facts     `json:"facts"`
}

// Run gathers the facts and judges them for t.
func Run(ctx context.Context, t target.Target, o Options) (Result, error) {
	d, err := Load()
	if err != nil {
		return Result{}, err
	}
	f, err := Gather(ctx, t, d, o)
	if err != nil {
		return Result{}, err
	}
	return Judge(t, f, d), nil
}

// Count is how many findings have the status.
func (r Result) Count(s report.Status) int {
	n := 0
	for _, f := range r.Findings {
		if f.Status == s {
			n++
		}
	}
	return n
}

// Requirements are the findings in the form of a plan: a warning holds.
func (r Result) Requirements() []report.Requirement {
	var out []report.Requirement
	for _, f := range r.Findings {
		out = append(out, f.Requirement)
	}
	return out
}

// Err is nil when nothing stops the target here: an unmet error (exit code 3)
// when something fails, an inconclusive one (6) when a requirement could not
// be judged.
func (r Result) Err() error {
	if r.Count(report.Fail) > 0 {
		return &report.UnmetError{Target: r.Target, All: r.Requirements()}
	}
	var open []string
	for _, f := range r.Findings {
		if f.Status == report.Unclear {
			open = append(open, f.Name)
		}
	}
	if len(open) > 0 {
		return report.Problemf(report.Inconclusive, "%s: cannot tell about %s", r.Target, strings.Join(open, ", ")).
			WithHint("invar doctor %s --json shows what was read", r.Target)
	}
	return nil
}

// pass, fail and warn make findings; judges fill what they know.
func (n Need) finding() Finding {
	return Finding{
		ID: n.ID, Group: "requirement", For: n.For, Status: report.Pass,
		Requirement: report.Requirement{Name: n.Name, Want: n.Want, Source: n.Source, OK: true},
	}
}

// unmet marks f as not met, as hard as the need says.
func (f Finding) unmet(level, got, hint string) Finding {
	f.Got, f.Hint = got, hint
	if level == "warn" {
		f.Status = Warn
		return f
	}
	f.Status, f.OK = report.Fail, false
	return f
}

// unclear marks f as not judged, with the reason.
func (f Finding) unclear(reason string) Finding {
	f.Status, f.OK, f.Got = report.Unclear, false, reason
	return f
}

func (f Finding) gotf(format string, args ...any) Finding {
	f.Got = fmt.Sprintf(format, args...)
	return f
}
