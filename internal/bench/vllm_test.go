package bench

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/invar-ops/invar/internal/invar"
	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/run"
	"github.com/invar-ops/invar/internal/testkit"
	"github.com/invar-ops/invar/internal/vllm"
)

// rounds that two servers take turns; the first of each is not counted.
const serveRounds = 5

// BenchmarkServe is what invar's operators cost a vLLM server on the CPU: two
// servers with the same model run side by side, one of them with the operators,
// and vLLM's own benchmark asks them in turns, 32 requests at once. The server
// that is not asked waits. The values are of the time for all requests.
func BenchmarkServe(b *testing.B) {
	place := testkit.VLLM(b)
	s := invar.Session{Prefix: filepath.Join(testkit.Cache(), "vllm"), Env: os.Environ(), Runner: run.System{}, Progress: report.Discard, Version: "1.0.0"}
	_, err := s.Build(b.Context(), invar.Options{Target: "cpu", Python: place.Python})
	must(b, err)
	for _, model := range []string{"small-float32", "small-bfloat16"} {
		b.Run("dtype="+place.Dtypes[model]+"/concurrent=32", func(b *testing.B) {
			usual := testkit.ServeVLLM(b, place, model)
			ours := testkit.ServeVLLM(b, place, model, "INVAR_BATCH_INVARIANT=1")
			for b.Loop() {
				var with, without []float64
				for round := range serveRounds {
					// Who goes first changes, so that what the machine does meanwhile meets both.
					a, o := 0.0, 0.0
					if round%2 == 0 {
						a, o = serve(b, place, usual, round), serve(b, place, ours, round)
					} else {
						o, a = serve(b, place, ours, round), serve(b, place, usual, round)
					}
					if round > 0 {
						without, with = append(without, a), append(with, o)
					}
				}
				b.ReportMetric(least(with), "ours-s")
				b.ReportMetric(least(without), "usual-s")
				b.ReportMetric(least(with)/least(without), "of-usual")
			}
		})
	}
}

// serve runs vLLM's benchmark once and returns the seconds that all requests took.
func serve(b *testing.B, place vllm.Place, s *testkit.Server, seed int) float64 {
	b.Helper()
	dir := b.TempDir()
	res, err := run.System{}.Run(b.Context(), run.Cmd{Argv: []string{
		place.Command, "bench", "serve", "--backend", "openai", "--base-url", s.URL, "--model", s.Model,
		"--dataset-name", "random", "--random-input-len", "128", "--random-output-len", "64", "--ignore-eos",
		"--num-prompts", "64", "--max-concurrency", "32", "--seed", fmt.Sprint(seed), "--disable-tqdm",
		"--save-result", "--result-dir", dir, "--result-filename", "result.json",
	}, Env: run.Setenv(os.Environ(), "HF_HUB_OFFLINE", "1")})
	if err != nil {
		b.Fatalf("%v\n%s", err, res.Stderr)
	}
	raw, err := os.ReadFile(filepath.Join(dir, "result.json"))
	must(b, err)
	var r struct {
		Duration  float64 `json:"duration"`
		Completed int     `json:"completed"`
		Tokens    int     `json:"total_output_tokens"`
	}
	must(b, json.Unmarshal(raw, &r))
	if r.Completed != 64 || r.Duration <= 0 || r.Tokens != 64*64 {
		b.Fatalf("vllm bench serve: %d of 64 requests, %d tokens in %v s", r.Completed, r.Tokens, r.Duration)
	}
	return r.Duration
}

func least(all []float64) float64 {
	low := all[0]
	for _, v := range all {
		low = min(low, v)
	}
	return low
}
