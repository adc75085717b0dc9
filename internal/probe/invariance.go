package probe

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/invar-ops/invar/internal/report"
)

// leastDistinct is the share of pool rows whose results must differ from each
// other: sums of cancelling data coincide now and then, broken operators always.
const leastDistinct = 0.2

// invariance is level 7: the bits of a row are the same in every context, the
// data could have shown otherwise, and the control is caught.
func (p *prober) invariance(context.Context) ([]report.Check, error) {
	f := p.measured.Invariance
	if f == nil {
		return []report.Check{skipped(Invariance, p.name(Invariance), "it was not measured")}, nil
	}
	p.coverage = p.cover(f)
	var out []report.Check
	for _, name := range p.operatorNames() {
		if slices.Contains(p.uncovered, name) {
			out = append(out, unclear("bits of "+name, "the schedule has no line that calls it"))
			continue
		}
		out = append(out, p.bits(name, f))
	}
	for _, s := range p.plan.Routed {
		out = append(out, p.bits(s.Operator, f))
	}
	return append(out, control(f), routing(f)), nil
}

const bitsWant = "the same bits of a row in every batch, position, neighbourhood, layout, thread count and ISA level"

// bits judges one operator over its shapes and dtypes.
func (p *prober) bits(name string, f *invarianceFacts) report.Check {
	c := report.Check{Level: Invariance, Name: "bits of " + spoken(name), Status: report.Pass, Want: bitsWant}
	var failed, doubts []string
	var pairs, differ int64
	for _, o := range slices.Concat(f.Operators, f.Failures) {
		if o.Operator != name && !p.through(o.Operator, o.Family, name) {
			continue
		}
		pairs, differ = pairs+o.Pairs, differ+o.Differ
		what := o.Label + " " + o.Dtype
		switch {
		case o.Error != "":
			failed = append(failed, what+": "+o.Error)
		case o.Differ > 0:
			failed = append(failed, what+": "+difference(o))
		default:
			for _, d := range vacuous(o) {
				doubts = append(doubts, what+": "+d)
			}
		}
	}
	c.Got = fmt.Sprintf("%s pairs, %s differ", thousands(pairs), thousands(differ))
	switch {
	case len(failed) > 0:
		c.Status, c.Got = report.Fail, c.Got+"\n"+strings.Join(failed, "\n")
		c.Hint = "the first line names two contexts; run the operator in both and compare the bits"
	case len(doubts) > 0:
		c.Status, c.Reason = report.Unclear, strings.Join(doubts, "; ")
	case pairs == 0:
		c.Status, c.Reason = report.Unclear, "nothing was compared"
	}
	return c
}

// through reports whether a case of another operator also calls name.
func (p *prober) through(operator, family, name string) bool {
	for _, s := range p.plan.Operators {
		if s.Operator == operator && s.Family == family && slices.Contains(s.Needs, name) {
			return true
		}
	}
	return false
}

// spoken is an operator's name for people: "torch:mv" is torch's, under routing.
func spoken(name string) string {
	if function, ok := strings.CutPrefix(name, "torch:"); ok {
		return "torch." + function + ", routed"
	}
	return name
}

func difference(o caseFacts) string {
	text := fmt.Sprintf("%s of %s pairs differ, at m = %s", thousands(o.Differ), thousands(o.Pairs), ints(o.Differing, 12))
	if len(o.Examples) > 0 {
		e := o.Examples[0]
		text += fmt.Sprintf("; row %d element %d is %s at (%s) and %s at (%s)", e.Row, e.Element, e.FirstBits, e.First, e.SecondBits, e.Second)
	}
	return text
}

// vacuous lists why a case without a difference proves nothing.
func vacuous(o caseFacts) []string {
	var out []string
	if o.Inputs < o.Rows {
		out = append(out, fmt.Sprintf("only %d of %d input rows differ from each other", o.Inputs, o.Rows))
	}
	if o.Constant {
		out = append(out, "every result holds the same bits")
	} else if float64(o.Results) < leastDistinct*float64(o.Rows) {
		out = append(out, fmt.Sprintf("%d rows have only %d different results", o.Rows, o.Results))
	}
	if o.OrderSensitive == 0 {
		out = append(out, "no bit changes when the reduction runs in another order, so these data show nothing")
	}
	if len(o.Batches) < 2 {
		out = append(out, "only one batch size was run")
	}
	return out
}

// control judges the operator that breaks the contract on purpose.
func control(f *invarianceFacts) report.Check {
	c := report.Check{Level: Invariance, Name: "control", Status: report.Pass, Want: "the batch-dependent kernel is found different in every dtype"}
	var caught, missed []string
	for _, o := range f.Control {
		if o.Differ > 0 {
			caught = append(caught, fmt.Sprintf("%s: %s of %s pairs differ", o.Dtype, thousands(o.Differ), thousands(o.Pairs)))
		} else {
			missed = append(missed, o.Dtype)
		}
	}
	for _, o := range f.Failures {
		if strings.HasPrefix(o.Operator, "_") {
			missed = append(missed, o.Dtype+" ("+o.Error+")")
		}
	}
	c.Got = strings.Join(caught, "; ")
	if len(missed) > 0 || len(caught) == 0 {
		c.Status = report.Unclear
		c.Reason = "the control was not caught in " + firstNonEmpty(strings.Join(missed, ", "), "any dtype") + ": the sweep sees nothing, so agreement proves nothing"
	}
	return c
}

// routing checks that torch's own functions really reached the kernels: the
// package's counts must cover the calls that were made.
func routing(f *invarianceFacts) report.Check {
	c := report.Check{Level: Invariance, Name: "routing", Status: report.Pass, Want: "every call of a routed torch function taken by the invariant kernels, with the operator's bits"}
	var missed []string
	calls, functions := 0, map[string]bool{}
	for _, o := range f.Operators {
		if o.Routed == nil {
			continue
		}
		calls += o.Routed.Calls
		functions[o.Routed.Function] = true
		if o.Routed.Calls == 0 || o.Routed.Taken < int64(o.Routed.Calls) {
			missed = append(missed, fmt.Sprintf("torch.%s %s: %d calls, %d taken", o.Routed.Function, o.Dtype, o.Routed.Calls, o.Routed.Taken))
		}
	}
	c.Got = fmt.Sprintf("%d calls of %d functions, all taken", calls, len(functions))
	if len(missed) > 0 {
		c.Status, c.Got = report.Fail, strings.Join(missed, "; ")
		c.Hint = "batch_invariant_ops.report() says what was routed and why not"
	}
	return c
}

func unclear(name, reason string) report.Check {
	return report.Check{Level: Invariance, Name: name, Status: report.Unclear, Reason: reason}
}
