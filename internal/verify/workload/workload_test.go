package workload

import (
	"slices"
	"strings"
	"testing"

	"github.com/invar-ops/invar/internal/data"
	"github.com/invar-ops/invar/internal/report"
)

// TestPresetOfPR45683 is exact: what the script of that change sends.
func TestPresetOfPR45683(t *testing.T) {
	t.Parallel()
	ws, err := Select("pr-45683", nil, 0)
	if err != nil || len(ws) != 1 {
		t.Fatalf("%v, %v", ws, err)
	}
	w := ws[0]
	if want := (Sampling{MaxTokens: 8, Temperature: 0.6, TopP: 1, Seed: 42, Logprobs: 5}); w.Sampling != want {
		t.Errorf("got %+v, want %+v", w.Sampling, want)
	}
	if p := w.Prompts; p.Count != 32 || p.Min != 10 || p.Max != 50 || p.Seed != 42 || len(openings) != 15 {
		t.Errorf("%+v, %d openings", p, len(openings))
	}
	var modes []Mode
	for _, r := range w.Runs {
		modes = append(modes, r.Mode)
		if r.Extra != 0 || r.Repeat != 1 {
			t.Errorf("%+v: nothing else is sent", r)
		}
	}
	if want := []Mode{Alone, List, Concurrent}; !slices.Equal(modes, want) {
		t.Errorf("got %v, want %v", modes, want)
	}
	seen := map[string]bool{}
	for i, p := range w.Prompts.All() {
		if n := len(strings.Fields(p)); n < 10 || n > 50+12 {
			t.Errorf("prompt %d has %d words", i, n)
		}
		seen[p] = true
	}
	if len(seen) != 32 {
		t.Errorf("%d different prompts", len(seen))
	}
}

// TestHarnessOf51187: 45 at once, five times, with the same first 16 words.
func TestHarnessOf51187(t *testing.T) {
	t.Parallel()
	ws, err := Select("", []string{"repeats-51187"}, 0)
	if err != nil {
		t.Fatal(err)
	}
	w := ws[0]
	r := w.Runs[0]
	if w.Prompts.Count+r.Extra != 45 || r.Repeat != 5 || r.Mode != Concurrent || w.Sampling.MaxTokens != 24 || w.Sampling.Temperature != 0 || w.Sampling.Logprobs != 5 {
		t.Errorf("%+v", w)
	}
	head := strings.Join(strings.Fields(w.Prompts.At(0))[:16], " ")
	for i, p := range w.Prompts.All() {
		if !strings.HasPrefix(p, head+" ") {
			t.Errorf("prompt %d: %q has another prefix", i, p)
		}
	}
	for _, p := range w.Fillers(r).All() {
		if strings.HasPrefix(p, head) {
			t.Errorf("filler %q has the prefix", p)
		}
	}
}

func TestPromptsAreTheSameEverywhere(t *testing.T) {
	t.Parallel()
	for style, want := range map[string]string{
		mixed: "Explain to a beginner how", shared: "", long: "Document 0.", outlier: "0000",
	} {
		p := Prompts{Style: style, Count: 4, Min: 10, Max: 20, Seed: 1}
		if a, b := p.At(0), p.At(0); a != b || !strings.HasPrefix(a, want) || a == p.At(1) {
			t.Errorf("%s: %q, %q", style, a, b)
		}
	}
	// A prompt whose bytes change is another verification.
	if got := (Prompts{Style: mixed, Count: 1, Min: 3, Max: 3, Seed: 42}).At(0); got != "Explain to a beginner how "+sentenceOf(42, 0, 3) {
		t.Errorf("%q", got)
	}
}

func sentenceOf(seed uint64, i, n int) string {
	p := Prompts{Style: long, Count: 1, Min: n, Max: n, Seed: seed}
	_, rest, _ := strings.Cut(p.At(i), ". ")
	return rest
}

func TestMixedKeepsEveryPrompt(t *testing.T) {
	t.Parallel()
	for _, extra := range []int{0, 1, 3, 8, 100} {
		w := Workload{Prompts: Prompts{Style: mixed, Count: 8, Min: 3, Max: 5}}
		var at []int
		for i := range w.Mixed(Arrangement{Fillers: mixed, Extra: extra}) {
			at = append(at, i)
		}
		fillers := 0
		var own []int
		for _, i := range at {
			if i == Filler {
				fillers++
			} else {
				own = append(own, i)
			}
		}
		if fillers != extra || !slices.Equal(own, []int{0, 1, 2, 3, 4, 5, 6, 7}) {
			t.Errorf("extra %d: %v", extra, at)
		}
	}
}

func TestSaltsKeepRunsApart(t *testing.T) {
	t.Parallel()
	salt := func(c Cache, run, i string) string { return Arrangement{Cache: c}.Salt("b", run, i) }
	if salt(Cold, "r1", "0") == salt(Cold, "r2", "0") || salt(Cold, "r1", "0") != salt(Cold, "r1", "1") {
		t.Error("cold runs share a salt, or a cold run has several")
	}
	if salt(Apart, "r1", "0") == salt(Apart, "r1", "1") || salt(Warm, "r1", "0") != salt(Warm, "r2", "3") {
		t.Error("requests apart share a salt, or warm runs do not")
	}
}

func TestSelect(t *testing.T) {
	t.Parallel()
	presets, err := Presets()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range presets {
		ws, err := Select(p.Name, nil, 0)
		if err != nil || len(ws) != len(p.Workloads) || p.About == "" {
			t.Errorf("%s: %v", p.Name, err)
		}
		for _, w := range ws {
			if w.About == "" || w.Source == "" {
				t.Errorf("%s has no source", w.Name)
			}
		}
	}
	for _, bad := range [][]string{{"nosuch"}, {"pr-45683", "nosuch"}} {
		if _, err := Select("full", bad, 0); report.ExitCode(err) != report.Usage {
			t.Errorf("%v: %v", bad, err)
		}
	}
	if ws, err := Select("", []string{"prefix", "prefix"}, 100); err != nil || len(ws) != 1 || ws[0].Prompts.Count != 100 {
		t.Errorf("%+v, %v", ws, err)
	}
}

// TestDataIsChecked: what the decoder cannot know is refused.
func TestDataIsChecked(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"mode":    "prompts: {style: mixed, count: 1}\nsampling: {max_tokens: 1}\nruns: [{name: a, mode: sideways}]",
		"cache":   "prompts: {style: mixed, count: 1}\nsampling: {max_tokens: 1}\nruns: [{name: a, mode: alone, cache: hot}]",
		"style":   "prompts: {style: haiku, count: 1}\nsampling: {max_tokens: 1}\nruns: [{name: a, mode: alone}]",
		"fillers": "prompts: {style: mixed, count: 1}\nsampling: {max_tokens: 1}\nruns: [{name: a, mode: alone, fillers: mixed}]",
		"no runs": "prompts: {style: mixed, count: 1}\nsampling: {max_tokens: 1}",
		"unknown": "prompts: {style: mixed, count: 1}\nsampling: {max_tokens: 1, top_k: 3}\nruns: [{name: a, mode: alone}]",
	} {
		var w Workload
		err := data.Decode(name, []byte(text), &w)
		if err == nil {
			err = w.check()
		}
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
