package workload

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/invar-ops/invar/internal/data"
	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/run"
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
	if p := w.Prompts; p.Style != drawn || p.Count != 32 || p.Min != 10 || p.Max != 50 || p.Seed != 42 || len(templates) != 15 || len(draw) != 32 {
		t.Errorf("%+v, %d templates, %d drawn", p, len(templates), len(draw))
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
	seen := map[string]int{}
	for i, p := range w.Prompts.All() {
		if n := len(strings.Fields(p)); n < 8 || n > 16 {
			t.Errorf("prompt %d has %d words", i, n)
		}
		seen[p]++
	}
	if len(seen) != 14 || seen[templates[13]] != 0 {
		t.Errorf("%d different prompts, want 14 of the 15 templates", len(seen))
	}
	if more := (Prompts{Style: drawn, Count: 33, Min: 10, Max: 50, Seed: 42}).At(32); len(strings.Fields(more)) < 10 {
		t.Errorf("the prompt after the drawn ones: %q", more)
	}
}

// TestDrawIsThatOfPython makes the draw again as the test of vLLM makes it.
func TestDrawIsThatOfPython(t *testing.T) {
	t.Parallel()
	py, err := exec.LookPath("python3")
	if err != nil {
		t.Fatal(err)
	}
	const script = `
import random
random.seed(42)
out = []
for _ in range(32):
    out.append(random.choice(range(15)))
    random.randint(10, 50)
print(*out)
`
	res, err := run.System{}.Run(t.Context(), run.Cmd{Argv: []string{py, "-c", script}, Env: os.Environ()})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := strings.TrimSpace(string(res.Stdout)), strings.Trim(fmt.Sprint(draw), "[]"); got != want {
		t.Errorf("Python draws %s\nwe have     %s", got, want)
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
