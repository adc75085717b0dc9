package divergence

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func read(t *testing.T, name string) *Report {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	var s Scanner
	for i := range b { // in the smallest pieces
		if _, err := s.Write(b[i : i+1]); err != nil {
			t.Fatal(err)
		}
	}
	return s.Report()
}

// TestCases are real texts with the answer that is right for each.
func TestCases(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		word    Word
		prompts int
		delta   float64
		prompt  int
		token   int
		sameIDs bool
		says    []string
	}{
		"01-pytest-divergence-tokens-equal.log":    {Variant, 6, 6.696177e-02, 96, 126, true, []string{"6 prompts differ", "6.696e-02 (prompt 96, token 126)", "comparison of texts would have passed"}},
		"02-server-test-32-prompts.log":            {Variant, 2, 5.671501e-02, 2, 0, true, []string{"2 prompts differ", "2 are the same", "all tokens are the same"}},
		"04-outputs-differ-by-batch-size-diff.txt": {Variant, 1, 0, 0, 0, false, []string{"text of 1 answer changes"}},
		"05-logprob-json-tie.json":                 {Tied, 0, 0, 0, 0, false, []string{`top-1 tie at step 0: " First" and " There"`, "-1.726818561553955"}},
		"07-npu-bi-off-baseline-table.txt":         {Repeats, 0, 0, 0, 0, false, []string{"serial, concurrent repeats itself exactly", "3,566 and 3,096 tokens", "dependent on the batch"}},
		"08-pytest-summary-2-failed.log":           {Failing, 0, 0, 0, 0, false, []string{"2 tests of 6 failed", "not in this text"}},
		"10-sse-completions-logprobs-tie.txt":      {Truncated, 0, 0, 0, 0, false, []string{"9 tokens, cut", "null, which is normal with echo"}},
		"11-gdn-exact-top-logprob-tie.txt":         {Variant, 1, 0.018796563, 0, 0, true, []string{"differ by up to 0.0188", "not invariant", "exactly the same logprob"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := read(t, name)
			if r == nil {
				t.Fatal("not recognised")
			}
			if r.Word != c.word || r.Prompts != c.prompts || math.Abs(r.MaxDelta-c.delta) > 1e-9 || r.Prompt != c.prompt || r.Token != c.token || r.SameIDs != c.sameIDs {
				t.Errorf("got %+v\nwant %+v", r, c)
			}
			for _, s := range c.says {
				if !strings.Contains(r.Sentence, s) {
					t.Errorf("%q is not in %q", s, r.Sentence)
				}
			}
			if r.Try == "" {
				t.Error("it does not say what to do")
			}
		})
	}
}

// TestHints are what the right answers add.
func TestHints(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"02-server-test-32-prompts.log":            "#45683",
		"04-outputs-differ-by-batch-size-diff.txt": "expected without batch invariance",
		"05-logprob-json-tie.json":                 "do not blame a kernel",
		"11-gdn-exact-top-logprob-tie.txt":         "same logprobs in all runs",
	} {
		if r := read(t, name); !strings.Contains(r.Try, want) {
			t.Errorf("%s: %q is not in %q", name, want, r.Try)
		}
	}
}

// TestOtherShapes are the same kinds in other clothes, and texts of no kind.
func TestOtherShapes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text string
		word Word
	}{
		"ids that differ":       {"x [DIVERGENCE] Prompt 3, Token 0: max_diff=nan\n  Token IDs: bs1=1, bsN=2\n", Variant},
		"fail without a number": {"[FAIL] Prompt 7 Step 3: Different tokens sampled.\n", Variant},
		"english table":         {"| mode | tokens | repeats |\n|---|---|---|\n| alone | 10 | identical |\n| at once | 11 | identical |\n", Repeats},
		"tie only":              {"a: token 1 = -0.5, token 2 = -0.5\nb: token 1 = -0.5, token 2 = -0.5\n", Tied},
		"passing summary":       {"===== 6 passed in 3.1s =====\n", ""},
		"a log":                 {"INFO everything is fine\n", ""},
		"a table of another":    {"| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |\n", ""},
		"whole event":           {`data: {"choices":[{"logprobs":{"token_logprobs":[-1],"top_logprobs":[{"a":-1}]}}]}` + "\n", ""},
		"json of another":       {`[{"a":1}]`, ""},
		"nothing":               {"", ""},
	} {
		var s Scanner
		_, _ = s.Write([]byte(c.text))
		r := s.Report()
		if got := wordOf(r); got != c.word {
			t.Errorf("%s: %q, want %q (%+v)", name, got, c.word, r)
		}
	}
}

func wordOf(r *Report) Word {
	if r == nil {
		return ""
	}
	return r.Word
}

func FuzzScanner(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.*")
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var whole, pieces Scanner
		_, _ = whole.Write(b)
		_, _ = pieces.Write(b[:len(b)/2])
		_, _ = pieces.Write(b[len(b)/2:])
		x, y := whole.Report(), pieces.Report()
		if wordOf(x) != wordOf(y) || x != nil && (x.Sentence == "" || x.Sentence != y.Sentence) {
			t.Errorf("%+v in one piece, %+v in two", x, y)
		}
	})
}
