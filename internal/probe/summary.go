package probe

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/invar-ops/invar/internal/report"
)

// Coverage counts what level 7 really went through.
type Coverage struct {
	Operators []string `json:"operators"`
	Functions []string `json:"functions"` // of torch, routed to the operators
	Dtypes    []string `json:"dtypes"`
	Batches   []int    `json:"batches"` // numbers of rows
	Threads   []int    `json:"threads"`
	ISALevels []string `json:"isa_levels"`
	Layouts   []string `json:"layouts"`
	Fillers   []string `json:"fillers"`
	Calls     int      `json:"calls"`
	Pairs     int64    `json:"pairs"`  // of contexts of one row, compared bit by bit
	Differ    int64    `json:"differ"` // of those
	Control   int64    `json:"control_differ"`
	LeftOut   []string `json:"left_out,omitempty"`
}

func (p *prober) cover(f *invarianceFacts) *Coverage {
	c := &Coverage{LeftOut: f.LeftOut}
	for _, o := range f.Operators {
		for _, name := range p.operatorNames() {
			if o.Operator == name || p.through(o.Operator, o.Family, name) {
				c.Operators = add(c.Operators, name)
			}
		}
		if o.Routed != nil {
			c.Functions = add(c.Functions, o.Routed.Function)
		}
		c.Dtypes = add(c.Dtypes, o.Dtype)
		c.Batches = add(c.Batches, o.Batches...)
		c.Layouts, c.Fillers = add(c.Layouts, o.Covered["layout"]...), add(c.Fillers, o.Covered["neighbours"]...)
		c.ISALevels = add(c.ISALevels, o.Covered["isa"]...)
		for _, t := range o.Covered["threads"] {
			if n, err := strconv.Atoi(t); err == nil {
				c.Threads = add(c.Threads, n)
			}
		}
		c.Calls, c.Pairs, c.Differ = c.Calls+o.Calls, c.Pairs+o.Pairs, c.Differ+o.Differ
	}
	for _, o := range f.Control {
		c.Control += o.Differ
	}
	slices.Sort(c.Batches)
	slices.Sort(c.Threads)
	return c
}

func add[T comparable](to []T, values ...T) []T {
	for _, v := range values {
		if !slices.Contains(to, v) {
			to = append(to, v)
		}
	}
	return to
}

// simulatedLine says what a simulated device is worth.
func simulatedLine(res Result) string {
	ran := slices.DeleteFunc(slices.Clone(res.Levels), func(l Level) bool { return l.Level <= Kernels || l.Status == report.Skip })
	switch len(ran) {
	case 0:
		return "the CANN here is that of a " + res.Simulated + ": no level ran on hardware"
	case 1:
		return fmt.Sprintf("level %d ran on a %s: it says nothing about hardware", ran[0].Level, res.Simulated)
	}
	return "levels 6 and 7 ran on a " + res.Simulated + ": they say nothing about hardware"
}

// summarize says in a few lines how far the installation is proved and what
// was not run.
func summarize(res Result) []string {
	var out []string
	counts := map[report.Status]int{}
	for _, l := range res.Levels {
		counts[l.Status]++
	}
	var words []string
	for _, s := range []struct {
		status report.Status
		word   string
	}{{report.Pass, "passed"}, {report.Fail, "failed"}, {report.Unclear, "inconclusive"}, {report.Skip, "skipped"}} {
		if counts[s.status] > 0 {
			words = append(words, fmt.Sprintf("%d %s", counts[s.status], s.word))
		}
	}
	first := strings.Join(words, ", ")
	if c := res.Coverage; c != nil {
		first += fmt.Sprintf(": %s, %s, %s, %s, %s: %s of %s pairs differ", count(len(c.Operators), "operator"), count(len(c.Dtypes), "dtype"),
			count(len(c.Batches), "batch size"), count(len(c.Threads), "thread count"), count(len(c.ISALevels), "ISA level"), thousands(c.Differ), thousands(c.Pairs))
	}
	out = append(out, first)
	if res.Simulated != "" {
		out = append(out, simulatedLine(res))
	}
	if line := controlLine(res); line != "" {
		out = append(out, line)
	}
	not := notRun(res)
	if not != "" {
		out = append(out, not)
	}
	for _, l := range res.Levels {
		if l.Status != report.Pass && (l.Status != report.Skip || not == "") {
			out = append(out, fmt.Sprintf("level %d (%s) %s: %s", l.Level, l.Name, l.Status, l.Reason))
		}
	}
	return out
}

// notRun is the one line for the last levels where everything before them
// passed and one thing kept all of them from being run.
func notRun(res Result) string {
	var levels []string
	reason := ""
	for _, l := range res.Levels {
		switch {
		case l.Status == report.Pass && len(levels) == 0:
			continue
		case l.Status != report.Skip || len(levels) > 0 && l.Reason != reason:
			return ""
		}
		levels, reason = append(levels, strconv.Itoa(l.Level)), l.Reason
	}
	if len(levels) == 0 || res.Proved == 0 {
		return ""
	}
	return fmt.Sprintf("proved to level %d; %s not run: %s", res.Proved, strings.Join(levels, " and "), reason)
}

func controlLine(res Result) string {
	i := slices.IndexFunc(res.Checks, func(c report.Check) bool { return c.Level == Invariance && c.Name == "control" })
	if i < 0 {
		return ""
	}
	text := "control: our batch-dependent kernel is caught, so the check can fail"
	if res.Checks[i].Status != report.Pass {
		text = "control: our batch-dependent kernel is not caught, so nothing is shown"
	}
	for _, o := range res.Observations {
		if o.Name == "torch" {
			text += "; " + o.Text
		}
	}
	return text
}

// observations collects what is shown beside the verdict.
func (p *prober) observations() []Observation {
	out := slices.Clone(p.extra)
	if p.measured != nil && p.measured.Invariance != nil {
		if o := p.measured.Invariance.Observed; o != nil {
			out = append(out, Observation{"torch", observed(*o)})
		}
		for _, l := range p.measured.Invariance.LeftOut {
			out = append(out, Observation{"not swept", l})
		}
	}
	if p.facts != nil {
		for _, n := range p.facts.Package.NotRouted {
			out = append(out, Observation{"not routed", n})
		}
	}
	return out
}

func observed(o observation) string {
	name := strings.Replace(o.Operator, ":", ".", 1)
	if len(o.Differing) == 0 {
		return name + " differs at none of these batch sizes"
	}
	return name + " differs at m = " + ints(o.Differing, 12)
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func ints(values []int, most int) string {
	var out []string
	for i, v := range values {
		if i == most {
			return strings.Join(out, ", ") + fmt.Sprintf(" and %d more", len(values)-most)
		}
		out = append(out, strconv.Itoa(v))
	}
	return strings.Join(out, ", ")
}

// thousands groups digits for people.
func thousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
