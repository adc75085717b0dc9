package judge

import (
	"fmt"
	"math"
	"slices"

	"github.com/invar-ops/invar/internal/verify/journal"
	"github.com/invar-ops/invar/internal/verify/workload"
)

// coverage lists what a reader will want to know was covered, and shows it
// from the metrics where that can be shown.
func coverage(f Facts, runs []*journal.Run) []Cover {
	var batch, over256, over512, warm float64
	hasSteps, warmRuns, requests := false, 0, 0
	for _, r := range runs {
		o := r.Observed
		hasSteps = hasSteps || o.HasSteps
		over256, over512 = over256+o.Over256, over512+o.Over512
		requests += o.Sent
		if o.HasSteps && o.Steps > 0 {
			batch = max(batch, o.Generated/o.Steps)
		}
		if c := cacheState(r); c != workload.Cold {
			warmRuns++
			warm += o.Hits
		}
	}
	out := []Cover{
		{"requests", "answered", fmt.Sprintf("%d", requests), requests > 0},
		{"requests in one step", "several", fmt.Sprintf("%.1f tokens generated a step in the fullest run", batch), batch >= sharedFrom},
		{"steps over 256 tokens", "some", stepText(over256, hasSteps), over256 > 0},
		{"steps over 512 tokens", "some", stepText(over512, hasSteps), over512 > 0},
		{"starts of the server", "3", fmt.Sprintf("%d", f.Server.Lifetimes), f.Server.Lifetimes >= 3},
	}
	out = append(out, firstCover(f, runs))
	if apart := unshared(f, runs); len(apart) > 0 {
		out = append(out, Cover{"shared steps in each workload", "all", "not in " + names(apart), false})
	}
	if warmRuns > 0 {
		got := fmt.Sprintf("%.0f cached tokens read", warm)
		if warm == 0 {
			got = "none read: the prefix cache is off, or its metrics are"
		}
		out = append(out, Cover{"warm prefix cache", "hits", got, warm > 0})
	}
	if n := len(f.Server.Ranks); n > 1 || f.RankURLs > 1 {
		out = append(out, rankCover(f, runs))
	}
	return out
}

// unshared lists the workloads none of whose runs had several requests in a step.
func unshared(f Facts, runs []*journal.Run) []string {
	var out []string
	for _, w := range f.Workloads {
		several, ok := false, false
		for _, r := range runs {
			if r.Workload == w.Name && r.Complete && r.Arrangement.Mode != workload.Alone {
				several, ok = true, ok || shares(r)
			}
		}
		if several && !ok {
			out = append(out, w.Name)
		}
	}
	return out
}

func stepText(n float64, known bool) string {
	if !known {
		return "unknown: the server has no such metric"
	}
	return fmt.Sprintf("%.0f", n)
}

// firstCover wants the first requests of a start among what was compared.
func firstCover(f Facts, runs []*journal.Run) Cover {
	c := Cover{Name: "first requests after a start", Want: "compared", Got: "none: no workload asks for them"}
	if !f.Fresh {
		c.Got = "none: the server was running already"
	}
	n := 0
	for _, r := range runs {
		if r.Arrangement.First && r.Complete {
			n++
		}
	}
	if n > 0 {
		c.Got, c.Shown = fmt.Sprintf("%d compared with later ones", n), true
	}
	return c
}

// rankCover wants every run that was addressed to a rank to have moved the
// counter of one server or engine only, another one for each rank.
func rankCover(f Facts, runs []*journal.Run) Cover {
	want := max(len(f.Server.Ranks), f.RankURLs)
	c := Cover{Name: "data-parallel ranks", Want: fmt.Sprintf("%d addressed", want)}
	reached := map[int]string{}
	for _, r := range runs {
		if r.Rank == journal.NoRank || !r.Complete {
			continue
		}
		engine := answered(r)
		if engine == "" {
			why := "the server does not route by rank"
			if r.Observed.Port != "" {
				why = "the counter at its port does not move alone"
			}
			c.Got = fmt.Sprintf("requests for rank %d were answered by several engines or by none, as the counters have it: %s", r.Rank, why)
			return c
		}
		if had, ok := reached[r.Rank]; ok && had != engine {
			c.Got = fmt.Sprintf("rank %d was answered by %s and by %s", r.Rank, had, engine)
			return c
		}
		reached[r.Rank] = engine
	}
	var engines []string
	for _, e := range reached {
		if !slices.Contains(engines, e) {
			engines = append(engines, e)
		}
	}
	c.Got, c.Shown = fmt.Sprintf("%d, each by its own counter", len(engines)), len(engines) == want
	if len(engines) < len(reached) {
		c.Got = fmt.Sprintf("%d ranks were answered by %d engines: the server does not route by rank", len(reached), len(engines))
	}
	return c
}

// answered is who answered a run that was addressed to a rank, as the counters
// of finished requests prove it, or "". Ranks with ports of their own: the
// counter at its port moved and no other one. One port for all, or several
// engines behind each: the counter of one engine moved.
func answered(r *journal.Run) string {
	o := r.Observed
	if len(o.Ports) > 1 && len(o.Engines) < 2 {
		if port := only(o.Ports, float64(o.Sent)); port == o.Port {
			return port
		}
		return ""
	}
	if o.Port != "" && len(o.Engines) < 2 {
		return "" // no other port has counters to compare with
	}
	if e := only(o.Engines, float64(o.Sent)); e != "" {
		return "engine " + e
	}
	return ""
}

// only is the one engine that answered all n requests, or "".
func only(engines map[string]float64, n float64) string {
	name := ""
	for e, v := range engines {
		switch {
		case v == 0:
		case v < n || name != "":
			return ""
		default:
			name = e
		}
	}
	return name
}

// power says how likely a defect would have been missed. The rates are those
// of known defects: one outcome of five runs, one start of two.
func power(f Facts, runs []*journal.Run, pairs int) []Power {
	repeats := map[string]int{}
	most := 0
	for _, r := range runs {
		repeats[r.Workload]++
		most = max(most, repeats[r.Workload])
	}
	out := []Power{
		{Defect: "another outcome in one of five runs", Tries: most, Miss: miss(0.2, most)},
		{Defect: "shows in half of the starts", Tries: f.Server.Lifetimes, Miss: math.Pow(0.5, float64(f.Server.Lifetimes))},
	}
	if pairs > 0 {
		// The rule of three: with no event in n tries the rate is below 3/n, 95 times of 100.
		out = append(out, Power{Defect: fmt.Sprintf("differs in %.2g %% of the pairs, evenly spread", min(300/float64(pairs), 100)), Tries: pairs, Miss: 0.05})
	}
	return out
}

// miss is the chance that n repeats all show one of two outcomes.
func miss(p float64, n int) float64 {
	if n < 1 {
		return 1
	}
	return math.Pow(p, float64(n)) + math.Pow(1-p, float64(n))
}
