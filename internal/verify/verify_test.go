package verify

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/testkit/simserver"
	"github.com/invar-ops/invar/internal/verify/judge"
)

// simulate verifies a simulated server in simulated time.
func simulate(t *testing.T, c simserver.Config, change func(*Options)) (res *judge.Result, err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		o := Options{
			URL: "http://sim", Timeout: time.Minute, Preset: "full", Progress: report.Discard,
			Transport: simserver.Transport{Handler: simserver.New(c)},
		}
		if change != nil {
			change(&o)
		}
		res, err = Server(t.Context(), o)
		time.Sleep(time.Minute) // engines end when they have been idle
	})
	return res, err
}

// caught wants a verdict and, in brackets, what its reasons, notes or sentence must name.
type caught struct {
	defect simserver.Defect
	config simserver.Config
	word   judge.Word
	code   int
	names  string // id of a reason or a note, or a part of the sentence
}

func defects() []caught {
	return []caught{
		{"", simserver.Config{}, judge.Invariant, report.Done, "No answer changed"},
		{"", simserver.Config{Engines: 4}, judge.Invariant, report.Done, "No answer changed"},
		{"", simserver.Config{MaxTokens: 300}, judge.Invariant, report.Done, "No answer changed"},
		{"", simserver.Config{NoCache: true}, judge.Invariant, report.Done, "warm prefix cache"},
		{"", simserver.Config{Busy: 5}, judge.Invariant, report.Done, "waits"},
		{"", simserver.Config{SGLang: true, Step: 50 * time.Millisecond}, judge.Invariant, report.Done, "no-ids"},
		{"", simserver.Config{SGLang: true, Engines: 2, Step: 50 * time.Millisecond}, judge.Invariant, report.Done, "no-ids"},
		{simserver.RMSNorm256, simserver.Config{SGLang: true, Step: 50 * time.Millisecond}, judge.Variant, report.CheckFailed, "with the batch"},
		{simserver.BatchOfOne, simserver.Config{}, judge.Variant, report.CheckFailed, "with the batch"},
		{simserver.RMSNorm256, simserver.Config{}, judge.Variant, report.CheckFailed, "with the batch"},
		{simserver.RankOrder, simserver.Config{Engines: 4}, judge.Variant, report.CheckFailed, "rank"},
		{simserver.FA3Tile, simserver.Config{}, judge.Variant, report.CheckFailed, "with the batch"},
		{simserver.Cascade, simserver.Config{}, judge.Variant, report.CheckFailed, ""},
		{simserver.FP8Scale, simserver.Config{}, judge.Variant, report.CheckFailed, ""},
		{simserver.StalePrompt, simserver.Config{}, judge.Variant, report.CheckFailed, "prefix cache"},
		{simserver.FirstAfter, simserver.Config{}, judge.Invariant, report.Done, "first-requests"},
		{simserver.TieOrder, simserver.Config{}, judge.Variant, report.CheckFailed, "exactly equal"},
		{simserver.DroppedTop, simserver.Config{}, judge.Variant, report.CheckFailed, "with the batch"},
		{simserver.FlakyRun, simserver.Config{}, judge.Variant, report.CheckFailed, "while repeats alone agree"},
		{simserver.Preempts, simserver.Config{}, judge.Inconclusive, report.Inconclusive, "preempted"},
		{simserver.NaN, simserver.Config{}, judge.Inconclusive, report.Inconclusive, "nan"},
		{simserver.WrongIDs, simserver.Config{}, judge.Inconclusive, report.Inconclusive, "unanswered"},
		{simserver.BadIndex, simserver.Config{}, judge.Inconclusive, report.Inconclusive, "unanswered"},
		{simserver.Slow, simserver.Config{}, judge.Inconclusive, report.Inconclusive, "too slow"},
		{simserver.Dies, simserver.Config{}, judge.Inconclusive, report.Failed, "server died"},
		{simserver.FrozenStats, simserver.Config{}, judge.Inconclusive, report.Inconclusive, "metrics"},
		{simserver.HappyStats, simserver.Config{}, judge.Inconclusive, report.Inconclusive, "metrics"},
		{simserver.NoStats, simserver.Config{}, judge.Inconclusive, report.Inconclusive, "no-metrics"},
		{simserver.OneByOne, simserver.Config{}, judge.Inconclusive, report.Inconclusive, "not-shared"},
		{simserver.Canned, simserver.Config{}, judge.Inconclusive, report.Inconclusive, "canned"},
		{simserver.Certain, simserver.Config{}, judge.Inconclusive, report.Inconclusive, "no-room"},
		{simserver.NoLogprobs, simserver.Config{}, judge.Inconclusive, report.Inconclusive, "unanswered"},
		{simserver.DeafToRank, simserver.Config{Engines: 4}, judge.Inconclusive, report.Inconclusive, "ranks"},
		{simserver.DeafToSalt, simserver.Config{}, judge.Invariant, report.Done, "salt"},
		{simserver.NoIDs, simserver.Config{}, judge.Invariant, report.Done, "no-ids"},
	}
}

// TestDefects: each defect is found, or named as the reason why nothing can be
// said; a clean server passes.
func TestDefects(t *testing.T) {
	t.Parallel()
	for _, c := range defects() {
		t.Run(fmt.Sprintf("%s%+v", c.defect, c.config), func(t *testing.T) {
			t.Parallel()
			check(t, c, 1)
		})
	}
}

func check(t *testing.T, c caught, seed uint64) {
	t.Helper()
	c.config.Seed = seed
	if c.defect != "" {
		c.config.Defects = []simserver.Defect{c.defect}
	}
	res, err := simulate(t, c.config, nil)
	if res == nil {
		t.Fatalf("seed %d: no result: %v", seed, err)
	}
	v := res.Verdict
	if v.Word != c.word || report.ExitCode(err) != c.code || !named(v, c.names) {
		t.Errorf("seed %d: got %s, code %d (%v)\n%+v\nwant %s, code %d, %q", seed, v.Word, report.ExitCode(err), err, v, c.word, c.code, c.names)
	}
}

func named(v judge.Verdict, what string) bool {
	return strings.Contains(v.Sentence, what) ||
		slices.ContainsFunc(append(slices.Clone(v.Reasons), v.Notes...), func(r judge.Reason) bool { return r.ID == what })
}

// TestSuspects: what a defect looks like is named, among others that look alike.
func TestSuspects(t *testing.T) {
	t.Parallel()
	for defect, want := range map[simserver.Defect]string{
		simserver.BatchOfOne: "mode-off", simserver.RMSNorm256: "rmsnorm-256", simserver.FA3Tile: "fa3-tile",
		simserver.FP8Scale: "fp8-scale", simserver.RankOrder: "moe-combine", simserver.StalePrompt: "prefix-cache", simserver.TieOrder: "tie",
	} {
		t.Run(string(defect), func(t *testing.T) {
			t.Parallel()
			c := simserver.Config{Seed: 1, Defects: []simserver.Defect{defect}}
			if defect == simserver.RankOrder {
				c.Engines = 4
			}
			res, err := simulate(t, c, nil)
			if res == nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(res.Suspects, func(s judge.Suspect) bool { return s.ID == want }) {
				for _, w := range res.Workloads {
					t.Log(w.Name, w.Differ, w.ByDim)
				}
				t.Errorf("suspects %+v, want %s", res.Suspects, want)
			}
			if want != "mode-off" && slices.ContainsFunc(res.Suspects, func(s judge.Suspect) bool { return s.ID == "mode-off" }) {
				t.Error("mode-off is named for a single defect")
			}
		})
	}
}
