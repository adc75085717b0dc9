package judge

import (
	"math"
	"testing"

	"github.com/invar-ops/invar/internal/verify/journal"
	"github.com/invar-ops/invar/internal/verify/workload"
)

// TestMiss has the figures of the docs: one outcome of 20 % is missed by 5, 10
// and 20 repeats with 33, 11 and 1.2 %.
func TestMiss(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]float64{0: 1, 1: 1, 5: 0.33, 10: 0.11, 20: 0.012} {
		if got := miss(0.2, n); math.Abs(got-want) > 0.005 {
			t.Errorf("%d repeats: %.4f, want %.3f", n, got, want)
		}
	}
}

// TestRanks: a run for a rank has to move the counter of one engine by all its
// requests, and every rank another one.
func TestRanks(t *testing.T) {
	t.Parallel()
	run := func(rank int, engines map[string]float64) *journal.Run {
		r := &journal.Run{Key: journal.Key{Rank: rank}, Complete: true}
		r.Observed.Sent, r.Observed.Engines = 4, engines
		return r
	}
	f := Facts{Server: Server{Ranks: []string{"0", "1"}}}
	for name, c := range map[string]struct {
		runs  []*journal.Run
		shown bool
	}{
		"each its own":          {[]*journal.Run{run(0, map[string]float64{"0": 4, "1": 0}), run(1, map[string]float64{"1": 4})}, true},
		"numbered otherwise":    {[]*journal.Run{run(0, map[string]float64{"1": 4}), run(1, map[string]float64{"0": 4})}, true},
		"spread":                {[]*journal.Run{run(0, map[string]float64{"0": 2, "1": 2}), run(1, map[string]float64{"1": 4})}, false},
		"both by one":           {[]*journal.Run{run(0, map[string]float64{"0": 4}), run(1, map[string]float64{"0": 4})}, false},
		"counters do not move":  {[]*journal.Run{run(0, map[string]float64{"0": 0}), run(1, nil)}, false},
		"one was not addressed": {[]*journal.Run{run(0, map[string]float64{"0": 4}), run(journal.NoRank, map[string]float64{"1": 4})}, false},
		"a rank moves":          {[]*journal.Run{run(0, map[string]float64{"0": 4}), run(0, map[string]float64{"1": 4}), run(1, map[string]float64{"1": 4})}, false},
	} {
		if got := rankCover(f, c.runs); got.Shown != c.shown || got.Got == "" {
			t.Errorf("%s: %+v, want shown %v", name, got, c.shown)
		}
	}
}

// TestRankPorts: where ranks have ports of their own, the counter at the port
// that was asked has to move, and no other one.
func TestRankPorts(t *testing.T) {
	t.Parallel()
	run := func(rank int, port string, ports, engines map[string]float64) *journal.Run {
		r := &journal.Run{Key: journal.Key{Rank: rank}, Complete: true}
		r.Observed.Sent, r.Observed.Port, r.Observed.Ports, r.Observed.Engines = 4, port, ports, engines
		return r
	}
	one := map[string]float64{"0": 4}
	f := Facts{Server: Server{Ranks: []string{"0"}}, RankURLs: 2}
	for name, c := range map[string]struct {
		runs  []*journal.Run
		shown bool
	}{
		"each its own":            {[]*journal.Run{run(0, "a", map[string]float64{"a": 4, "b": 0}, one), run(1, "b", map[string]float64{"a": 0, "b": 4}, one)}, true},
		"both move":               {[]*journal.Run{run(0, "a", map[string]float64{"a": 4, "b": 4}, one), run(1, "b", map[string]float64{"a": 4, "b": 4}, one)}, false},
		"the other moves":         {[]*journal.Run{run(0, "a", map[string]float64{"a": 0, "b": 4}, one), run(1, "b", map[string]float64{"a": 4, "b": 0}, one)}, false},
		"none moves":              {[]*journal.Run{run(0, "a", map[string]float64{"a": 0, "b": 0}, nil), run(1, "b", map[string]float64{"a": 0, "b": 0}, nil)}, false},
		"no counters":             {[]*journal.Run{run(0, "a", nil, nil), run(1, "b", nil, nil)}, false},
		"the same port twice":     {[]*journal.Run{run(0, "a", map[string]float64{"a": 4}, one), run(1, "a", map[string]float64{"a": 4}, one)}, false},
		"one port has none":       {[]*journal.Run{run(0, "a", map[string]float64{"a": 4}, one), run(1, "b", map[string]float64{"a": 0}, nil)}, false},
		"engines behind each":     {[]*journal.Run{run(0, "a", map[string]float64{"a": 4, "b": 4}, map[string]float64{"0": 4, "1": 0}), run(1, "b", map[string]float64{"a": 4, "b": 4}, map[string]float64{"0": 0, "1": 4})}, true},
		"one engine behind both":  {[]*journal.Run{run(0, "a", map[string]float64{"a": 4, "b": 4}, map[string]float64{"0": 4, "1": 0}), run(1, "b", map[string]float64{"a": 4, "b": 4}, map[string]float64{"0": 4, "1": 0})}, false},
		"a balancer behind each":  {[]*journal.Run{run(0, "a", map[string]float64{"a": 4, "b": 4}, map[string]float64{"0": 2, "1": 2}), run(1, "b", map[string]float64{"a": 4, "b": 4}, map[string]float64{"0": 2, "1": 2})}, false},
		"only one rank was asked": {[]*journal.Run{run(0, "a", map[string]float64{"a": 4, "b": 0}, one)}, false},
	} {
		if got := rankCover(f, c.runs); got.Shown != c.shown || got.Got == "" {
			t.Errorf("%s: %+v, want shown %v", name, got, c.shown)
		}
	}
}

// TestDimensions: a pair of runs belongs to the outermost thing that differs.
func TestDimensions(t *testing.T) {
	t.Parallel()
	base := journal.Key{Role: journal.Subject, Lifetime: 1, Rank: journal.NoRank, Run: "alone"}
	with := func(change func(*journal.Run)) *journal.Run {
		r := &journal.Run{Key: base, Arrangement: workload.Arrangement{Mode: workload.Alone, Cache: workload.Apart}}
		change(r)
		return r
	}
	a := with(func(*journal.Run) {})
	for name, c := range map[string]struct {
		b       *journal.Run
		engines int
		want    Dimension
	}{
		"again":            {with(func(r *journal.Run) { r.Repeat = 1 }), 1, Again},
		"cold by the run":  {with(func(r *journal.Run) { r.Arrangement.Cache, r.Run = workload.Cold, "list" }), 1, Batch},
		"warm":             {with(func(r *journal.Run) { r.Arrangement.Cache, r.Run = workload.Warm, "warm" }), 1, Cache},
		"addressed":        {with(func(r *journal.Run) { r.Rank = 1 }), 4, Rank},
		"any of several":   {with(func(r *journal.Run) { r.Repeat = 1 }), 4, Rank},
		"another lifetime": {with(func(r *journal.Run) { r.Lifetime, r.Rank = 2, 1 }), 4, Start},
		"first elsewhere":  {with(func(r *journal.Run) { r.Arrangement.First, r.Run, r.Lifetime, r.Rank = true, "first", 2, 1 }), 4, First},
		"the first":        {with(func(r *journal.Run) { r.Arrangement.First, r.Run = true, "first" }), 1, First},
	} {
		if got := dimensionOf(a, c.b, c.engines); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	first := with(func(r *journal.Run) { r.Arrangement.First, r.Run = true, "first" })
	next := with(func(r *journal.Run) { r.Arrangement.First, r.Run, r.Lifetime = true, "first", 2 })
	if got := dimensionOf(first, next, 1); got != Start {
		t.Errorf("the first of two starts: %q", got)
	}
	one := with(func(r *journal.Run) { r.Arrangement.Mode, r.Run = workload.Concurrent, "at once" })
	two := with(func(r *journal.Run) { r.Arrangement.Mode, r.Run, r.Repeat = workload.Concurrent, "at once", 1 })
	if got := dimensionOf(one, two, 1); got != Company {
		t.Errorf("at once again: %q", got)
	}
	for _, d := range Dimensions {
		if d.Text() == "" {
			t.Errorf("%s has no text", d)
		}
	}
}
