package judge

import (
	"fmt"

	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/verify/answer"
	"github.com/invar-ops/invar/internal/verify/journal"
)

// verdict weighs: a difference that no preemption explains is a difference
// whatever else was not shown; without one, everything has to be shown.
func verdict(f Facts, res *Result, all, compare []*journal.Run) Verdict {
	v := Verdict{Ended: f.Ended}
	t := total(res.Workloads)
	v.Notes = notes(f, res, all, compare)
	if t.Differ > t.Unclear {
		v.Word, v.Sentence = Variant, variantSentence(res)+controlSentence(res.Control)
		return v.ended(f)
	}
	v.Reasons = vacuity(all, compare, res.Workloads)
	v.Reasons = append(v.Reasons, f.reasons(res)...)
	switch {
	case t.Pairs == 0:
		v.Word = Inconclusive
		v.Reasons = append(v.Reasons, Reason{ID: "nothing-compared", Text: "no request was answered twice"})
	case len(v.Reasons) > 0:
		v.Word = Inconclusive
	default:
		v.Word, v.Sentence = Invariant, invariantSentence(res)+controlSentence(res.Control)
		return v.ended(f)
	}
	v.Sentence = "This run cannot tell whether answers depend on the batch: " + v.Reasons[0].Text + "."
	if t.Differ > 0 {
		v.Sentence += fmt.Sprintf(" %d of %d pairs differ, all of them where requests were preempted.", t.Differ, t.Pairs)
	}
	return v.ended(f)
}

// ended says first that the verification did not come to its end.
func (v Verdict) ended(f Facts) Verdict {
	if f.Ended == "" {
		return v
	}
	if v.Word == Invariant {
		v.Word = Inconclusive
		v.Reasons = append(v.Reasons, Reason{ID: "ended", Text: "the verification did not come to its end: " + f.Ended})
	}
	v.Sentence = fmt.Sprintf("Stopped early (%s): %s The rest is about the part that ran. %s", f.Ended, f.Because, v.Sentence)
	return v
}

// reasons are those that do not lie in the runs.
func (f Facts) reasons(res *Result) []Reason {
	var out []Reason
	if f.LogPreemptions > 0 {
		out = append(out, Reason{ID: "preempted", Text: fmt.Sprintf("the server's log tells of %d preempted requests: recomputed tokens take another path than decoded ones", f.LogPreemptions), Hint: "lower --max-num-seqs or --max-model-len, or raise the KV memory of the server"})
	}
	if f.Unrouted > 0 {
		out = append(out, Reason{ID: "routing", Text: fmt.Sprintf("%d of %d engines have no worker that says it runs invar's operators", f.Unrouted, len(f.Server.Ranks)), Hint: "see the server's log: every worker writes one line, \"batch-invariant operators active\""})
	}
	if c := res.Control; c != nil && c.Status != report.Pass {
		out = append(out, Reason{ID: "control", Text: fmt.Sprintf("the control %s does not vary either (%d pairs): the workloads could not have shown a defect", c.Server, c.Pairs), Hint: "give a control that varies: the same server without batch invariance"})
	}
	for _, c := range res.Coverage {
		switch {
		case c.Shown:
		case c.Name == "data-parallel ranks":
			out = append(out, Reason{ID: "ranks", Text: "data-parallel ranks: " + c.Got, Hint: "give each rank's own port: --rank-url"})
		case f.Strict:
			out = append(out, Reason{ID: "coverage", Text: fmt.Sprintf("not covered: %s (%s)", c.Name, c.Got), Hint: "without --strict this is a limit of the verdict, not a reason against it"})
		}
	}
	if f.Strict && res.Control == nil {
		out = append(out, Reason{ID: "sensitivity", Text: "sensitivity unknown: no control was given", Hint: "pass --control-url or --control-launch: the same server without batch invariance"})
	}
	return out
}

func notes(f Facts, res *Result, all, compare []*journal.Run) []Reason {
	var out []Reason
	if n := startup(all); n > 0 {
		out = append(out, Reason{ID: "first-requests", Text: fmt.Sprintf("the first requests after the start got other answers (%d of the discarded pass): warm-up, which is not the batch", n), Hint: "send a few requests after each start before the server takes traffic"})
	}
	var waits int64
	noIDs, foreign, cold := 0, 0.0, 0.0
	for _, r := range all {
		waits += r.Observed.Waits
	}
	for _, r := range compare {
		o := r.Observed
		noIDs += r.NoIDs
		if o.Metrics && o.HasSteps && o.Finished > float64(o.Sent) {
			foreign += o.Finished - float64(o.Sent)
		}
		if r.Arrangement.Cache == "apart" {
			cold += o.Hits
		}
	}
	for _, r := range f.Routing {
		out = append(out, Reason{ID: "routing", Text: r})
	}
	if waits > 0 {
		out = append(out, Reason{ID: "waits", Text: fmt.Sprintf("the server asked %d times to wait (429 or 503): fewer requests met than were sent at once", waits)})
	}
	if noIDs > 0 {
		out = append(out, Reason{ID: "no-ids", Text: "the server returns no token ids: tokens are compared by their text, and two ids with one text look the same"})
	}
	if foreign > 0 {
		out = append(out, Reason{ID: "other-traffic", Text: fmt.Sprintf("the server answered %.0f requests of others meanwhile", foreign)})
	}
	if cold > 0 {
		out = append(out, Reason{ID: "salt", Text: fmt.Sprintf("%.0f cached tokens were read where each request had a salt of its own: the server does not honour it, cold runs were not cold", cold)})
	}
	if res.Control == nil && !f.Strict {
		out = append(out, Reason{ID: "sensitivity", Text: "sensitivity unknown: no control was given", Hint: "--control-url or --control-launch: the same server without batch invariance"})
	}
	return out
}

func variantSentence(res *Result) string {
	t := total(res.Workloads)
	k := kinds(res.Workloads)
	what := cause(res.ByDim)
	if k[answer.Tie] == t.Changed {
		return fmt.Sprintf("The choice among tokens of exactly equal logprob changes: %s; %d of %d requests changed (%d of %d pairs), and no number moved.", what, t.Changed, t.Requests, t.Differ, t.Pairs)
	}
	s := fmt.Sprintf("Answers change: %s; %d of %d requests changed (%d of %d pairs)", what, t.Changed, t.Requests, t.Differ, t.Pairs)
	blind, delta := 0, 0.0
	for _, w := range res.Workloads {
		blind += w.Blind
		delta = max(delta, w.MaxDelta)
	}
	if delta > 0 {
		s += fmt.Sprintf(", the largest logprob difference is %.3e", delta)
	}
	if blind == t.Changed {
		s += ", all texts are the same"
	}
	return s + "."
}

// cause names what moves the answers: what differs within exact repeats differs
// everywhere, so the first dimension that differs says it.
func cause(dims []Count) string {
	by := map[Dimension]Count{}
	for _, c := range dims {
		by[c.Dimension] = c
	}
	repeats := ""
	if c := by[Again]; c.Pairs > 0 {
		repeats = ", while repeats alone agree"
	}
	text := map[Dimension]string{
		Again:   "from one run to the next of the very same requests, even alone",
		Batch:   "with the batch" + repeats,
		Company: "between repeats of the same requests at once, whose steps are composed anew each time" + repeats,
		Cache:   "with what the prefix cache holds",
		Rank:    "with the data-parallel rank that answers",
		First:   "in the first requests after a start, while later ones agree: warm-up, which is not the batch",
		Start:   "from one start of the server to the next, stable within each",
	}
	for _, d := range Dimensions {
		if by[d].Differ > 0 {
			return text[d]
		}
	}
	return ""
}

func workloads(n int) string {
	if n == 1 {
		return "one workload"
	}
	return fmt.Sprintf("%d workloads", n)
}

// controlSentence sets the control beside the server that is judged.
func controlSentence(c *ControlResult) string {
	switch {
	case c == nil || c.Requests == 0:
		return ""
	case c.Plain:
		return fmt.Sprintf(" Without the operators: %d of %d requests differ; with: %d of %d.", c.Changed, c.Requests, c.Subject, c.Requests)
	}
	return fmt.Sprintf(" The control: %d of %d requests differ; the server: %d of %d.", c.Changed, c.Requests, c.Subject, c.Requests)
}

func invariantSentence(res *Result) string {
	t := total(res.Workloads)
	s := fmt.Sprintf("No answer changed: %d requests in %s, %d pairs compared bit by bit", t.Requests, workloads(len(res.Workloads)), t.Pairs)
	if n := res.Server.Lifetimes; n > 1 {
		s += fmt.Sprintf(" over %d starts", n)
	}
	if len(res.Power) > 0 {
		s += fmt.Sprintf("; a defect that shows in one of five runs would have been missed with a chance of %.0f %%", 100*res.Power[0].Miss)
	}
	var open []string
	for _, c := range res.Coverage {
		if !c.Shown {
			open = append(open, c.Name)
		}
	}
	if len(open) > 0 {
		s += "; not covered: " + names(open)
	}
	return s + "."
}
