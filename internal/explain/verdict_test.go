package explain

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestComparisons: texts of other harnesses are read as what they are; a
// summary alone and a cut answer are no cause.
func TestComparisons(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		verdict    Verdict
		rule, says string
	}{
		"01-pytest-divergence-tokens-equal.log":    {Found, "answers-variant", "6 prompts differ"},
		"02-server-test-32-prompts.log":            {Found, "answers-variant", "all tokens are the same"},
		"04-outputs-differ-by-batch-size-diff.txt": {Found, "answers-variant", "text of 1 answer"},
		"05-logprob-json-tie.json":                 {Found, "answers-tie", "tie at step 0"},
		"07-npu-bi-off-baseline-table.txt":         {Found, "answers-repeats-variant", "dependent on the batch"},
		"08-pytest-summary-2-failed.log":           {Elsewhere, "", "2 tests of 6 failed"},
		"10-sse-completions-logprobs-tie.txt":      {Elsewhere, "", "cut before its end"},
		"11-gdn-exact-top-logprob-tie.txt":         {Found, "answers-variant", "not invariant"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, err := os.Open(filepath.Join("..", "divergence", "testdata", name))
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			d, err := Log(t.Context(), f, Options{})
			if err != nil || d.Verdict != c.verdict || d.Rule != c.rule || !strings.Contains(d.Cause, c.says) {
				t.Errorf("got %+v, %v\nwant %+v", d, err, c)
			}
		})
	}
}
