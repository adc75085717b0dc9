package verify

import (
	"encoding/json"
	"os"
	"path/filepath"
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

// TestRealServer verifies a real vLLM server on the CPU with invar's operators
// and a bfloat16 model, and the same server without them as its control: the one
// is invariant, and the other shows that the workloads see what is not. The
// float32 model is that of TestStory in cmd/invar.
func TestRealServer(t *testing.T) {
	place, env := realVLLM(t)
	// Seeded sampling on the CPU does not survive a prompt that is cut into several
	// prefills (vLLM 0.32), so all prompts have to fit into one step.
	serve := place.ServeLine("small-bfloat16") + " --max-num-batched-tokens 16384"
	logs := t.TempDir()
	const requests = 8
	res, err := Server(t.Context(), Options{
		Launch: "INVAR_BATCH_INVARIANT=1 " + serve, ControlLaunch: serve, Lifetimes: 1,
		Workloads: []string{"lengths", "pr-45683", "decode-prefill", "first-request"}, Count: requests, Concurrency: 64,
		Timeout: 5 * time.Minute, Patience: 8 * time.Minute, Logs: logs, Env: env, Runner: run.System{}, Progress: report.Discard,
	})
	if err != nil || res.Verdict.Word != judge.Invariant {
		t.Fatalf("%v\n%+v", err, res)
	}
	t.Log(res.Verdict.Sentence)
	if c := res.Control; c == nil || c.Status != report.Pass || c.Changed == 0 || c.Subject != 0 || !c.Plain {
		t.Errorf("control: %+v", c)
	}
	for _, w := range res.Workloads {
		for _, r := range w.Runs {
			if !r.Complete || r.Answers != requests || r.Steps == 0 {
				t.Errorf("%s: %+v", w.Name, r)
			}
		}
		t.Logf("%s: %d pairs, %d differ; steps over 256: %v", w.Name, w.Pairs, w.Differ, w.Runs[1].Over256)
	}
	if n := len(res.Workloads); n != 4 {
		t.Errorf("%d workloads were compared, want 4", n)
	}
	checkRouting(t, filepath.Join(logs, "server-1.routing"))
}

// checkRouting reads what the worker says of itself.
func checkRouting(t *testing.T, dir string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "routing-0-*.json"))
	if err != nil || len(files) != 1 {
		t.Fatalf("routing records: %v, %v; want one", files, err)
	}
	b, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	var r struct {
		Schema  string                    `json:"schema"`
		Modules map[string]int            `json:"modules"`
		Worker  struct{ Threads int }     `json:"worker"`
		Routes  map[string]map[string]any `json:"routes"`
		Steps   int                       `json:"steps"`
		Most    int                       `json:"most_rows"`
	}
	if err := json.Unmarshal(b, &r); err != nil {
		t.Fatal(err)
	}
	softmax, _ := r.Routes["_log_softmax"]["routed"].(float64)
	if r.Schema != "invar.routing" || r.Worker.Threads != 2 || r.Modules["attention"] != 4 || r.Modules["norm"] != 9 || r.Steps < 32 || r.Most <= 512 || softmax == 0 {
		t.Errorf("routing record: %.2000s", b)
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
