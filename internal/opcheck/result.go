package opcheck

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/invar-ops/invar/internal/probe"
	"github.com/invar-ops/invar/internal/report"
)

// A Result is what a verification of operators found.
type Result struct {
	Preset    string            `json:"preset,omitempty"`
	Python    string            `json:"python"`
	Torch     string            `json:"torch"`
	Verdict   report.Status     `json:"verdict"`
	Sentence  string            `json:"sentence"` // the verdict with its reach
	Cases     []Case            `json:"cases"`
	Settings  []Setting         `json:"settings"` // threads and levels that were swept
	LeftOut   []string          `json:"left_out"`
	Locations map[string]string `json:"locations"` // operator to what was called
	Elapsed   time.Duration     `json:"elapsed_ns"`
}

// A Setting is one instruction set and number of threads.
type Setting struct {
	ISA     string `json:"isa"`
	Threads int    `json:"threads"`
}

// A Case is one operator, dtype, shape and seed.
type Case struct {
	probe.CaseFacts
	Seed       int64         `json:"seed"`
	Axes       []Axis        `json:"axes"`
	Control    Control       `json:"control"`
	Reproducer *Reproducer   `json:"reproducer,omitempty"`
	Status     report.Status `json:"status"`
	Reason     string        `json:"reason,omitempty"` // why it is not a pass
}

// An Axis says at which numbers of rows a row left the bits that it has in the
// full batch under the first setting.
type Axis struct {
	Sweep   string `json:"sweep"`
	Threads int    `json:"threads"`
	ISA     string `json:"isa"`
	Batches []int  `json:"batches"`
}

// A Control is the same operator and data with an order that follows the number
// of rows: a sweep that does not find it different proves nothing.
type Control struct {
	Pairs  int64 `json:"pairs"`
	Differ int64 `json:"differ"`
}

// A Reproducer is a Python file that shows the difference alone.
type Reproducer struct {
	Reason    string `json:"reason,omitempty"` // why there is none
	Script    string `json:"script,omitempty"`
	File      string `json:"file,omitempty"`
	Output    string `json:"output,omitempty"` // of a run in a process of its own
	Confirmed bool   `json:"confirmed"`        // that run ended with exit code 1
	Few       int    `json:"few,omitempty"`
	Many      int    `json:"many,omitempty"`
	Size      int    `json:"size,omitempty"`
	Columns   int    `json:"columns,omitempty"`
}

// judge gives every case its status, and the whole its verdict.
func judge(a answer, preset, exe string) Result {
	r := Result{
		Preset: preset, Python: exe, Torch: a.Torch, Cases: a.Cases, Settings: a.Settings,
		LeftOut: a.LeftOut, Locations: a.Locations, Verdict: report.Pass,
	}
	for i := range r.Cases {
		c := &r.Cases[i]
		c.Status, c.Reason = c.status()
		switch c.Status {
		case report.Fail:
			r.Verdict = report.Fail
		case report.Unclear:
			if r.Verdict == report.Pass {
				r.Verdict = report.Unclear
			}
		}
	}
	if len(r.Cases) == 0 {
		r.Verdict = report.Unclear
	}
	r.Sentence = r.sentence()
	return r
}

func (c Case) status() (report.Status, string) {
	doubts := probe.Vacuous(c.CaseFacts)
	switch {
	case c.Error != "":
		return report.Unclear, c.Error
	case c.Differ > 0:
		return report.Fail, c.where()
	case c.Control.Differ == 0:
		return report.Unclear, fmt.Sprintf("the control was not caught in %d pairs: this sweep sees nothing", c.Control.Pairs)
	case len(doubts) > 0:
		return report.Unclear, strings.Join(doubts, "; ")
	case c.Pairs == 0:
		return report.Unclear, "nothing was compared"
	}
	return report.Pass, ""
}

// where names the first failing shape and a pair.
func (c Case) where() string {
	var parts []string
	if rows := c.ByRows(); len(rows) > 0 {
		parts = append(parts, fmt.Sprintf("first at m = %d of %s", rows[0], joined(rows)))
	} else if len(c.Axes) > 0 {
		a := c.Axes[0]
		parts = append(parts, fmt.Sprintf("the number of rows alone changes nothing; %s with %d threads does, at m = %s", a.Sweep, a.Threads, joined(a.Batches)))
	}
	if len(c.Examples) > 0 {
		e := c.Examples[0]
		parts = append(parts, fmt.Sprintf("row %d element %d is %s at (%s) and %s at (%s)", e.Row, e.Element, e.FirstBits, e.First, e.SecondBits, e.Second))
	}
	return strings.Join(parts, "; ")
}

// ByRows lists the numbers of rows that alone change a row's bits: plain
// batches under the first setting, against the largest.
func (c Case) ByRows() []int {
	if i := slices.IndexFunc(c.Axes, func(a Axis) bool { return a.Sweep == "sizes" }); i >= 0 {
		return c.Axes[i].Batches
	}
	return nil
}

func joined(all []int) string {
	const most = 12
	var out []string
	for i, n := range all {
		if i == most {
			out = append(out, fmt.Sprintf("and %d more", len(all)-most))
			break
		}
		out = append(out, fmt.Sprint(n))
	}
	return strings.Join(out, ", ")
}

func (r Result) sentence() string {
	var pairs, differ int64
	failed, unclear := 0, 0
	rows := map[int]bool{}
	for _, c := range r.Cases {
		pairs, differ = pairs+c.Pairs, differ+c.Differ
		for _, b := range c.Batches {
			rows[b] = true
		}
		switch c.Status {
		case report.Fail:
			failed++
		case report.Unclear:
			unclear++
		}
	}
	reach := fmt.Sprintf("%d pairs of %d cases, %d numbers of rows, %d settings of threads and level", pairs, len(r.Cases), len(rows), len(r.Settings))
	switch r.Verdict {
	case report.Fail:
		return fmt.Sprintf("bits depend on the batch in %d of %d cases: %d of %s differ", failed, len(r.Cases), differ, reach)
	case report.Unclear:
		return fmt.Sprintf("%d of %d cases prove nothing; %s, none differs", unclear, len(r.Cases), reach)
	}
	return "no bit depends on the batch in " + reach + "; the control was caught in every case"
}

func (r Result) err() error {
	switch r.Verdict {
	case report.Fail:
		return report.Problemf(report.CheckFailed, "%s", r.Sentence).WithHint("run the reproducer, or use torch.ops.batch_invariant_ops in its place")
	case report.Unclear:
		if i := slices.IndexFunc(r.Cases, func(c Case) bool { return c.Error == "" }); i < 0 && len(r.Cases) > 0 {
			return report.Problemf(report.Failed, "no operator could be run: %s", r.Cases[0].Error).
				WithHint("--op MODULE:FUNCTION or FILE.py:FUNCTION; --family says how it is called")
		}
		return report.Problemf(report.Inconclusive, "%s", r.Sentence)
	}
	return nil
}
