package verify

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/invar-ops/invar/internal/testkit/simserver"
	"github.com/invar-ops/invar/internal/verify/judge"
)

// TestSituations are reports of people that hold no text to read: what the
// verdict says of the same situation on a simulated server.
func TestSituations(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		config simserver.Config
		check  func(*testing.T, *judge.Result)
	}{
		// Serial and concurrent each repeat themselves and differ from each other.
		"deterministic, not invariant": {simserver.Config{Defects: []simserver.Defect{simserver.BatchOfOne}}, func(t *testing.T, r *judge.Result) {
			if alone, batch := dimension(r, judge.Again), dimension(r, judge.Batch); alone.Pairs == 0 || alone.Differ != 0 || batch.Differ == 0 {
				t.Errorf("repeats %+v, batch %+v", alone, batch)
			}
			wants(t, r.Verdict.Sentence, "with the batch, while repeats alone agree")
		}},
		// All token ids are equal everywhere; only logprobs move, by the same largest difference again and again.
		"a kernel switched by tokens per step": {simserver.Config{Defects: []simserver.Defect{simserver.RMSNorm256}}, func(t *testing.T, r *judge.Result) {
			wants(t, r.Verdict.Sentence, "all texts are the same")
			for _, w := range r.Workloads {
				if w.Differ > 0 && (w.MaxDelta <= 0 || math.IsInf(w.MaxDelta, 0) || w.Blind != w.Changed) {
					t.Errorf("%s: largest difference %v, %d of %d with the same text", w.Name, w.MaxDelta, w.Blind, w.Changed)
				}
			}
		}},
		// Temperature 0 and three different texts, without the mode; or the mode was switched on in the client.
		"the mode is not on": {simserver.Config{Defects: []simserver.Defect{simserver.BatchOfOne}}, func(t *testing.T, r *judge.Result) {
			i := slices.IndexFunc(r.Suspects, func(s judge.Suspect) bool { return s.ID == "mode-off" })
			if i < 0 {
				t.Fatalf("suspects: %+v", r.Suspects)
			}
			wants(t, r.Suspects[i].Try, "VLLM_BATCH_INVARIANT=1", "a client cannot switch it on")
		}},
		// The first of five repeats differs: warm-up, no proof of batch dependence.
		"only the first differs": {simserver.Config{Defects: []simserver.Defect{simserver.FirstAfter}}, func(t *testing.T, r *judge.Result) {
			if r.Verdict.Word != judge.Invariant || !named(r.Verdict, "first-requests") {
				t.Errorf("%+v", r.Verdict)
			}
		}},
		// Two tokens of equal logprob: the flip is named a tie and no kernel is blamed.
		"a tie": {simserver.Config{Defects: []simserver.Defect{simserver.TieOrder}}, func(t *testing.T, r *judge.Result) {
			wants(t, r.Verdict.Sentence, "exactly equal logprob", "no number moved")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.config.Seed = 1
			res, err := simulate(t, c.config, nil)
			if res == nil {
				t.Fatal(err)
			}
			c.check(t, res)
		})
	}
}

func dimension(r *judge.Result, d judge.Dimension) judge.Count {
	for _, c := range r.ByDim {
		if c.Dimension == d {
			return c
		}
	}
	return judge.Count{}
}

func wants(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("%q is not in %q", p, text)
		}
	}
}
