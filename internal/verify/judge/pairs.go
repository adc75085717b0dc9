package judge

import (
	"fmt"
	"slices"

	"github.com/invar-ops/invar/internal/verify/answer"
	"github.com/invar-ops/invar/internal/verify/drive"
	"github.com/invar-ops/invar/internal/verify/journal"
	"github.com/invar-ops/invar/internal/verify/workload"
)

// A Reader fetches answers: the journal.
type Reader interface {
	Read(journal.Ref) (answer.Answer, []float64, error)
}

// asked says whether a run counts: the priming pass does not.
func asked(r *journal.Run) bool { return r.Run != drive.Priming }

// compared says whether there is something to compare in it.
func compared(r *journal.Run) bool { return asked(r) && r.Answers() > 0 }

// workloadOf compares all runs of one workload, each with each.
func workloadOf(w workload.Workload, runs []*journal.Run, engines int, rd Reader) (Workload, error) {
	out := Workload{Name: w.Name, About: w.About, Requests: w.Prompts.Count, Kinds: map[answer.Kind]int{}}
	dims := map[Dimension]*Count{}
	for _, r := range runs {
		out.Runs = append(out.Runs, runView(r))
		out.Room = out.Room.Add(r.Room)
	}
	out.Heat = make([][]int, len(runs))
	for i := range runs {
		out.Heat[i] = make([]int, len(runs))
		out.Heat[i][i] = -1
	}
	for i, a := range runs {
		for j := i + 1; j < len(runs); j++ {
			pairs, differ := meet(a, runs[j])
			out.Heat[i][j], out.Heat[j][i] = differ, differ
			d := dimensionOf(a, runs[j], engines)
			if dims[d] == nil {
				dims[d] = &Count{Dimension: d}
			}
			dims[d].Pairs += pairs
			dims[d].Differ += differ
			out.Pairs += pairs
			out.Differ += differ
			if a.Observed.Preemptions > 0 || runs[j].Observed.Preemptions > 0 {
				out.Unclear += differ
			}
		}
	}
	for _, d := range Dimensions {
		if c := dims[d]; c != nil {
			out.ByDim = append(out.ByDim, *c)
		}
	}
	if err := out.describe(w, runs, rd); err != nil {
		return out, err
	}
	return out, out.timeline(runs, rd)
}

// meet compares the answers that both runs have.
func meet(a, b *journal.Run) (pairs, differ int) {
	for i := range min(len(a.Refs), len(b.Refs)) {
		if !a.Refs[i].Has() || !b.Refs[i].Has() {
			continue
		}
		pairs++
		if a.Refs[i].Digest != b.Refs[i].Digest {
			differ++
		}
	}
	return pairs, differ
}

// dimensionOf is what differs between two runs; with several engines, a run that
// was not addressed to one may have been answered by any.
func dimensionOf(a, b *journal.Run, engines int) Dimension {
	switch {
	case a.Arrangement.First != b.Arrangement.First:
		return First
	case a.Lifetime != b.Lifetime:
		return Start
	case a.Rank != b.Rank || engines > 1 && a.Rank == journal.NoRank:
		return Rank
	case cacheState(a) != cacheState(b):
		return Cache
	case a.Run != b.Run:
		return Batch
	case a.Arrangement.Mode == workload.Alone:
		return Again
	}
	return Company
}

// cacheState joins the states that hold nothing of other runs. The first of
// several warm runs is the one that fills the cache.
func cacheState(r *journal.Run) workload.Cache {
	switch c := r.Arrangement.Cache; {
	case c == workload.Apart:
		return workload.Cold
	case c == workload.Warm && r.Repeat == 0:
		return "filling"
	default:
		return c
	}
}

// describe finds, for each request with several answers, where they part.
func (w *Workload) describe(wl workload.Workload, runs []*journal.Run, rd Reader) error {
	k := max(wl.Sampling.Logprobs, wl.Sampling.PromptLogprobs)
	for i := range w.Requests {
		a, b, distinct := parting(runs, i)
		if distinct < 2 {
			continue
		}
		w.Changed++
		x, _, err := rd.Read(runs[a].Refs[i])
		if err != nil {
			return err
		}
		y, _, err := rd.Read(runs[b].Refs[i])
		if err != nil {
			return err
		}
		d := answer.Compare(x, y, k)
		w.Kinds[d.Kind]++
		w.MaxDelta = max(w.MaxDelta, d.MaxDelta)
		if d.SameIDs {
			w.Blind++
		}
		if len(w.Details) < MaxDetails {
			w.Details = append(w.Details, Request{Index: i, Distinct: distinct, RunA: a, RunB: b, First: d})
		}
	}
	return nil
}

// parting is the first pair of runs that answered request i differently.
func parting(runs []*journal.Run, i int) (a, b, distinct int) {
	a = -1
	var seen []answer.Digest
	for n, r := range runs {
		if i >= len(r.Refs) || !r.Refs[i].Has() {
			continue
		}
		d := r.Refs[i].Digest
		if slices.Contains(seen, d) {
			continue
		}
		switch seen = append(seen, d); len(seen) {
		case 1:
			a = n
		case 2:
			b = n
		}
	}
	return a, b, len(seen)
}

// maxLanes bounds the requests of a timeline.
const maxLanes = 64

// timeline takes the first streamed run that has times.
func (w *Workload) timeline(runs []*journal.Run, rd Reader) error {
	for _, r := range runs {
		if !r.Arrangement.Stream || r.Arrangement.Mode == workload.Alone {
			continue
		}
		for i, ref := range r.Refs {
			if !ref.Has() || len(w.Timeline) >= maxLanes {
				continue
			}
			_, at, err := rd.Read(ref)
			if err != nil {
				return err
			}
			if len(at) > 0 {
				w.Timeline = append(w.Timeline, Lane{i, at})
			}
		}
		return nil
	}
	return nil
}

func runView(r *journal.Run) Run {
	o := r.Observed
	v := Run{
		Label: r.Run, Lifetime: r.Lifetime, Rank: r.Rank, Requests: len(r.Refs), Answers: r.Answers(), Complete: r.Complete,
		Steps: o.Steps, Over256: o.Over256, Over512: o.Over512, Preemptions: o.Preemptions, CacheHits: o.Hits, Waits: o.Waits,
		Milliseconds: float64(r.Elapsed.Microseconds()) / 1000,
	}
	if r.Arrangement.Repeat > 1 {
		v.Label += fmt.Sprintf(" #%d", r.Repeat+1)
	}
	if r.Attempt > 0 {
		v.Label += fmt.Sprintf(" (attempt %d)", r.Attempt+1)
	}
	if !r.Complete {
		v.Label += " (cut)"
	}
	if o.HasSteps && o.Steps > 0 {
		v.PerStep = o.Generated / o.Steps
	}
	return v
}
