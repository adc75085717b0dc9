package verify

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/invar-ops/invar/internal/invar"
	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/run"
	"github.com/invar-ops/invar/internal/testkit"
	"github.com/invar-ops/invar/internal/verify/judge"
	"github.com/invar-ops/invar/internal/vllm"
)

// realVLLM is the environment and the small models of the CI cache, with the
// operators of this tree in it, and the environment to run it in.
func realVLLM(t *testing.T) (vllm.Place, []string) {
	t.Helper()
	if testing.Short() {
		t.Skip("short: starts vLLM")
	}
	place := testkit.VLLM(t)
	s := invar.Session{Prefix: filepath.Join(testkit.Cache(), "vllm"), Env: os.Environ(), Runner: run.System{}, Progress: report.Discard, Version: "1.0.0"}
	if _, err := s.Build(t.Context(), invar.Options{Target: "cpu", Python: place.Python}); err != nil {
		t.Fatal(err)
	}
	env := run.Unsetenv(os.Environ(), "PYTHONPATH", "VIRTUAL_ENV", "VLLM_PLUGINS", "INVAR_BATCH_INVARIANT", "VLLM_BATCH_INVARIANT")
	env = run.Setenv(env, "VLLM_CACHE_ROOT", t.TempDir())
	for k, v := range place.Serve.Environment {
		env = run.Setenv(env, k, v)
	}
	return place, env
}

// TestRealServer verifies a real vLLM server on the CPU with invar's operators,
// and the same server without them as its control: the one is invariant, and
// the other shows that the workloads see what is not.
func TestRealServer(t *testing.T) {
	place, env := realVLLM(t)
	// Seeded sampling on the CPU does not survive a prompt that is cut into several
	// prefills (vLLM 0.32), so all prompts have to fit into one step.
	serve := strings.Join(append([]string{place.Command, "serve", place.Models["small-float32"], "--dtype", "float32", "--max-num-batched-tokens", "16384"}, place.Serve.Arguments...), " ")
	logs := t.TempDir()
	res, err := Server(t.Context(), Options{
		Launch: "INVAR_BATCH_INVARIANT=1 " + serve, ControlLaunch: serve, Lifetimes: 1,
		Workloads: []string{"pr-45683", "decode-prefill"}, Count: 8, Concurrency: 64,
		Timeout: 5 * time.Minute, Patience: 8 * time.Minute, Logs: logs, Env: env, Runner: run.System{}, Progress: report.Discard,
	})
	if err != nil || res.Verdict.Word != judge.Invariant {
		t.Fatalf("%v\n%+v", err, res)
	}
	t.Log(res.Verdict.Sentence)
	if c := res.Control; c == nil || c.Status != report.Pass || c.Differ == 0 {
		t.Errorf("control: %+v", c)
	}
	if !slices.ContainsFunc(res.Verdict.Notes, func(r judge.Reason) bool { return r.ID == "routing" }) {
		t.Errorf("no routing record was read: %+v", res.Verdict.Notes)
	}
	for _, w := range res.Workloads {
		for _, r := range w.Runs {
			if !r.Complete || r.Answers != 8 || r.Steps == 0 {
				t.Errorf("%s: %+v", w.Name, r)
			}
		}
		t.Logf("%s: %d pairs, %d differ; steps over 256: %v", w.Name, w.Pairs, w.Differ, w.Runs[1].Over256)
	}
}

// TestRealOffline finds LLM.generate without invar's operators variant.
func TestRealOffline(t *testing.T) {
	place, env := realVLLM(t)
	res, err := Offline(t.Context(), OfflineOptions{
		Options: Options{
			Lifetimes: 1, Workloads: []string{"pr-45683", "prompt-logprobs"}, Count: 8, Logs: t.TempDir(), Env: env, Runner: run.System{}, Progress: report.Discard,
		},
		Python: place.Python, Folder: place.Models["small-float32"],
		Arguments: map[string]any{"dtype": "float32", "max_model_len": 2048, "max_num_seqs": 32, "max_num_batched_tokens": 16384},
	})
	if res == nil || report.ExitCode(err) != report.CheckFailed || res.Verdict.Word != judge.Variant {
		p, _ := err.(*report.Problem) //nolint:errorlint // returned bare
		t.Fatalf("%v\n%+v\n%+v", err, p, res)
	}
	t.Log(res.Verdict.Sentence)
	for _, w := range res.Workloads {
		t.Logf("%s: %d of %d pairs differ, %v", w.Name, w.Differ, w.Pairs, w.Kinds)
	}
	if res.Server.Version == "" || res.Workloads[0].Runs[1].Steps == 0 {
		t.Errorf("the engine's version and counters are missing: %+v", res.Server)
	}
}
