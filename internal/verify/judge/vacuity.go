package judge

import (
	"fmt"

	"github.com/invar-ops/invar/internal/verify/answer"
	"github.com/invar-ops/invar/internal/verify/journal"
	"github.com/invar-ops/invar/internal/verify/workload"
)

// Bounds of the vacuity check.
const (
	sharedFrom = 1.5  // generated tokens a step that only several requests in it explain
	aloneUpTo  = 1.2  // what one request at a time may show; more is other traffic, speculation or a lie
	openShare  = 0.05 // part of the positions at which a second candidate must be in reach
)

// vacuity lists why "no difference" would prove nothing about these runs.
func vacuity(all, runs []*journal.Run, ws []Workload) []Reason {
	var out []Reason
	add := func(id, hint, format string, args ...any) {
		out = append(out, Reason{ID: id, Text: fmt.Sprintf(format, args...), Hint: hint})
	}
	if r := failures(all); r != nil {
		out = append(out, *r)
	}
	out = append(out, metricsReasons(runs)...)
	var room answer.Room
	nan, preempted := 0, 0.0
	for _, r := range runs {
		room = room.Add(r.Room)
		nan += r.NaN
		preempted += r.Observed.Preemptions
	}
	if nan > 0 {
		add("nan", "look for overflow in the model: try bfloat16 or float32", "%d answers hold logprobs that are not numbers (NaN): equal ones prove nothing", nan)
	}
	switch {
	case room.Steps == 0:
		add("no-logprobs", "start the server so that logprobs are allowed (--max-logprobs)", "no answer has logprobs with two candidates: text alone is nearly blind")
	case float64(room.Open) < openShare*float64(room.Steps):
		add("no-room", "use a model or prompts that are less certain", "the model leaves no room: at %d of %d positions the second candidate is out of reach", room.Steps-room.Open, room.Steps)
	}
	for _, w := range ws {
		if canned(w, runs) {
			add("canned", "is it a stub, or a cache in front of the server", "%s: all %d different prompts got the same answer", w.Name, w.Requests)
		}
	}
	if preempted > 0 {
		add("preempted", "lower --max-num-seqs or --max-model-len, or raise the KV memory of the server", "the server preempted %.0f requests: recomputed tokens take another path than decoded ones", preempted)
	}
	return out
}

func failures(runs []*journal.Run) *Reason {
	n, first := 0, ""
	for _, r := range runs {
		if !asked(r) {
			continue
		}
		n += r.Failed
		if first == "" && len(r.Failures) > 0 {
			first = r.Failures[0]
		}
	}
	if n == 0 {
		return nil
	}
	return &Reason{ID: "unanswered", Text: fmt.Sprintf("%d requests have no usable answer; the first: %s", n, first), Hint: "see the server's log"}
}

// metricsReasons asks whether requests shared steps, and whether the metrics
// that say so can be believed.
func metricsReasons(runs []*journal.Run) []Reason {
	var together []*journal.Run
	for _, r := range runs {
		if !r.Complete {
			continue
		}
		if o := r.Observed; o.Metrics && (o.Finished < float64(o.Sent) && o.HasSteps || o.Generated < float64(o.Completion)) {
			return []Reason{{ID: "metrics", Text: fmt.Sprintf("the metrics contradict the answers in %s: %.0f requests and %.0f tokens counted, %d and %d answered",
				r.Key, o.Finished, o.Generated, o.Sent, o.Completion), Hint: "is /metrics of this server, and of all its API processes"}}
		}
		if r.Arrangement.Mode == workload.Alone && alone(r) > aloneUpTo {
			return []Reason{{ID: "metrics", Text: fmt.Sprintf("the metrics show %.1f tokens a step in %s, where one request ran at a time: other traffic, speculative decoding, or counters that lie",
				alone(r), r.Key), Hint: "verify a server that nobody else uses, without speculative decoding"}}
		}
		if r.Arrangement.Mode != workload.Alone && len(r.Refs) > 1 {
			together = append(together, r)
		}
	}
	if len(together) == 0 {
		return []Reason{{ID: "not-shared", Text: "no run with several requests at once came to its end"}}
	}
	return shared(together)
}

func alone(r *journal.Run) float64 {
	if !r.Observed.HasSteps || r.Observed.Steps == 0 {
		return 0
	}
	return r.Observed.Generated / r.Observed.Steps
}

// shared wants requests of some run to have been in one step; which workloads
// did it is part of the coverage.
func shared(runs []*journal.Run) []Reason {
	known := false
	for _, r := range runs {
		if shares(r) {
			return nil
		}
		known = known || r.Observed.HasSteps || r.Observed.MaxRunning > 0
	}
	if !known {
		return []Reason{{ID: "no-metrics", Text: "the server tells nothing of its steps: whether requests shared one cannot be shown", Hint: "start it with metrics (vLLM: without --disable-log-stats; SGLang: with --enable-metrics)"}}
	}
	o := runs[0].Observed
	return []Reason{{ID: "not-shared", Text: fmt.Sprintf("requests never shared a step; in %s: %.0f tokens in %.0f steps", runs[0].Key, o.Generated, o.Steps), Hint: "raise --max-num-seqs of the server, or --concurrency"}}
}

// shares reports whether the metrics of a run show several requests in a step.
func shares(r *journal.Run) bool {
	o := r.Observed
	return o.HasSteps && o.Steps > 0 && o.Generated >= sharedFrom*o.Steps || !o.HasSteps && o.MaxRunning >= 2
}

// canned reports whether different prompts all got one answer.
func canned(w Workload, runs []*journal.Run) bool {
	for _, r := range runs {
		if r.Workload != w.Name {
			continue
		}
		seen := map[answer.Digest]bool{}
		n := 0
		for _, ref := range r.Refs {
			if ref.Has() {
				seen[ref.Digest] = true
				n++
			}
		}
		if n >= 4 && len(seen) == 1 {
			return true
		}
	}
	return false
}
