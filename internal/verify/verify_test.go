package verify

import (
	"fmt"
	"net/http"
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

// started makes o one that starts servers like c, lifetimes times.
func started(c simserver.Config, lifetimes int) func(*Options) {
	return func(o *Options) {
		o.Lifetimes, o.Transport = lifetimes, nil
		o.starts = func(l int) http.RoundTripper {
			c.Lifetime = uint64(l) //nolint:gosec // small
			return simserver.Transport{Handler: simserver.New(c)}
		}
	}
}

// caught wants a verdict and, in brackets, what its reasons, notes or sentence must name.
type caught struct {
	defect simserver.Defect
	config simserver.Config
	word   judge.Word
	code   int
	names  string // id of a reason or a note, or a part of the sentence
	starts int    // so many starts of the server; 0: it was running already
}

func defects() []caught {
	return []caught{
		{"", simserver.Config{}, judge.Invariant, report.Done, "No answer changed", 0},
		{"", simserver.Config{Engines: 4}, judge.Invariant, report.Done, "No answer changed", 0},
		{"", simserver.Config{MaxTokens: 300}, judge.Invariant, report.Done, "No answer changed", 0},
		{"", simserver.Config{NoCache: true}, judge.Invariant, report.Done, "warm prefix cache", 0},
		{"", simserver.Config{Busy: 5}, judge.Invariant, report.Done, "waits", 0},
		{"", simserver.Config{SGLang: true, Step: 50 * time.Millisecond}, judge.Invariant, report.Done, "No answer changed", 0},
		{"", simserver.Config{SGLang: true, Engines: 2, Step: 50 * time.Millisecond}, judge.Invariant, report.Done, "No answer changed", 0},
		{simserver.NoIDs, simserver.Config{SGLang: true, Step: 50 * time.Millisecond}, judge.Invariant, report.Done, "no-ids", 0},
		{simserver.RMSNorm256, simserver.Config{SGLang: true, Step: 50 * time.Millisecond}, judge.Variant, report.CheckFailed, "with the batch", 0},
		{simserver.BatchOfOne, simserver.Config{}, judge.Variant, report.CheckFailed, "with the batch", 0},
		{simserver.RMSNorm256, simserver.Config{}, judge.Variant, report.CheckFailed, "with the batch", 0},
		{simserver.RankOrder, simserver.Config{Engines: 4}, judge.Variant, report.CheckFailed, "rank", 0},
		{simserver.FA3Tile, simserver.Config{}, judge.Variant, report.CheckFailed, "with the batch", 0},
		{simserver.Cascade, simserver.Config{}, judge.Variant, report.CheckFailed, "", 0},
		{simserver.FP8Scale, simserver.Config{}, judge.Variant, report.CheckFailed, "", 0},
		{simserver.StalePrompt, simserver.Config{}, judge.Variant, report.CheckFailed, "prefix cache", 0},
		{simserver.FirstAfter, simserver.Config{}, judge.Invariant, report.Done, "first-requests", 0},
		{simserver.FirstAfter, simserver.Config{}, judge.Variant, report.CheckFailed, "in the first requests after a start", 1},
		{simserver.FirstAfter, simserver.Config{Engines: 4}, judge.Variant, report.CheckFailed, "in the first requests after a start", 2},
		{simserver.Autotune, simserver.Config{}, judge.Variant, report.CheckFailed, "from one start of the server to the next", 2},
		{"", simserver.Config{}, judge.Invariant, report.Done, "No answer changed", 2},
		{"", simserver.Config{Engines: 2}, judge.Invariant, report.Done, "No answer changed", 2},
		{simserver.TieOrder, simserver.Config{}, judge.Variant, report.CheckFailed, "exactly equal", 0},
		{simserver.DroppedTop, simserver.Config{}, judge.Variant, report.CheckFailed, "with the batch", 0},
		{simserver.FlakyRun, simserver.Config{}, judge.Variant, report.CheckFailed, "while repeats alone agree", 0},
		{simserver.Preempts, simserver.Config{}, judge.Inconclusive, report.Inconclusive, "preempted", 0},
		{simserver.NaN, simserver.Config{}, judge.Inconclusive, report.Inconclusive, "nan", 0},
		{simserver.WrongIDs, simserver.Config{}, judge.Inconclusive, report.Inconclusive, "unanswered", 0},
		{simserver.BadIndex, simserver.Config{}, judge.Inconclusive, report.Inconclusive, "unanswered", 0},
		{simserver.Slow, simserver.Config{}, judge.Inconclusive, report.Inconclusive, "too slow", 0},
		{simserver.Dies, simserver.Config{}, judge.Inconclusive, report.Failed, "server died", 0},
		{simserver.FrozenStats, simserver.Config{}, judge.Inconclusive, report.Inconclusive, "metrics", 0},
		{simserver.HappyStats, simserver.Config{}, judge.Inconclusive, report.Inconclusive, "metrics", 0},
		{simserver.NoStats, simserver.Config{}, judge.Inconclusive, report.Inconclusive, "no-metrics", 0},
		{simserver.OneByOne, simserver.Config{}, judge.Inconclusive, report.Inconclusive, "not-shared", 0},
		{simserver.Canned, simserver.Config{}, judge.Inconclusive, report.Inconclusive, "canned", 0},
		{simserver.Certain, simserver.Config{}, judge.Inconclusive, report.Inconclusive, "no-room", 0},
		{simserver.NoLogprobs, simserver.Config{}, judge.Inconclusive, report.Inconclusive, "unanswered", 0},
		{simserver.DeafToRank, simserver.Config{Engines: 4}, judge.Inconclusive, report.Inconclusive, "ranks", 0},
		{simserver.DeafToSalt, simserver.Config{}, judge.Invariant, report.Done, "salt", 0},
		{simserver.NoIDs, simserver.Config{}, judge.Invariant, report.Done, "no-ids", 0},
	}
}

// TestDefects: each defect is found, or named as the reason why nothing can be
// said; a clean server passes.
func TestDefects(t *testing.T) {
	t.Parallel()
	for _, c := range defects() {
		t.Run(fmt.Sprintf("%s%+v, %d starts", c.defect, c.config, c.starts), func(t *testing.T) {
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
	res, err := simulate(t, c.config, c.change())
	if res == nil {
		t.Fatalf("seed %d: no result: %v", seed, err)
	}
	v := res.Verdict
	if v.Word != c.word || report.ExitCode(err) != c.code || !named(v, c.names) {
		t.Errorf("seed %d: got %s, code %d (%v)\n%+v\nwant %s, code %d, %q", seed, v.Word, report.ExitCode(err), err, v, c.word, c.code, c.names)
	}
}

// change is what c needs of the options.
func (c caught) change() func(*Options) {
	if c.starts == 0 {
		return nil
	}
	return started(c.config, c.starts)
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
