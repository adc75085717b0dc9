package vllm_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/invar-ops/invar/internal/invar"
	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/run"
	"github.com/invar-ops/invar/internal/testkit"
	"github.com/invar-ops/invar/internal/vllm"
)

const requests = 32

// ready is the setup in the CI cache with the operators of this tree in it.
func ready(t *testing.T) vllm.Place {
	t.Helper()
	if testing.Short() {
		t.Skip("short: starts vLLM servers")
	}
	place := testkit.VLLM(t)
	s := invar.Session{
		Prefix: filepath.Join(testkit.Cache(), "vllm"), Env: os.Environ(), Runner: run.System{}, Progress: report.Discard, Version: "1.0.0",
	}
	if _, err := s.Build(t.Context(), invar.Options{Target: "cpu", Python: place.Python}); err != nil {
		t.Fatal(err)
	}
	return place
}

// The same 32 requests alone and at once, on a real server, with two threads,
// contexts up to 950 tokens and products over K = 4096: without invar's
// operators logprobs change in every request, with them in none. CI has it with
// invar's own client (TestStory, TestRealServer); this one shares nothing with
// that and is for .ci/soak.
func TestServerIsInvariantWithTheOperators(t *testing.T) {
	if os.Getenv("INVAR_SOAK_SERVERS") == "" {
		t.Skip("INVAR_SOAK_SERVERS is not set: .ci/soak servers")
	}
	place := ready(t)
	for _, model := range []string{"small-float32", "small-bfloat16"} {
		for _, on := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/operators=%v", model, on), func(t *testing.T) {
				routing := t.TempDir()
				var env []string
				if on {
					env = []string{"INVAR_BATCH_INVARIANT=1", "INVAR_ROUTING_DIR=" + routing}
				}
				s := testkit.ServeVLLM(t, place, model, env...)
				prompts := prompts()
				ask(t, s, prompts[0]) // the first request meets cold caches and is not counted
				alone := make([]answer, requests)
				for i, p := range prompts {
					alone[i] = ask(t, s, p)
				}
				one, two := together(t, s, prompts), together(t, s, prompts)
				differ, again := different(alone, one), different(one, two)
				t.Logf("%d of %d differ between alone and at once, %d between two runs at once", differ, requests, again)
				checkRouting(t, routing, on)
				if on && (differ != 0 || again != 0) {
					t.Errorf("with the operators: %d and %d of %d differ, want none", differ, again, requests)
				}
				// Rounding to bfloat16 hides some; float32 shows every one.
				if least := map[string]int{"small-float32": requests, "small-bfloat16": 1}[model]; !on && differ < least {
					t.Errorf("without the operators: %d of %d differ, want at least %d: this test would see nothing", differ, requests, least)
				}
			})
		}
	}
}

// prompts are token ids: 24 of 20 to 400 tokens and 8 of 750 to 950.
func prompts() [][]int {
	rng := rand.New(rand.NewPCG(42, 0))
	out := make([][]int, requests)
	for i := range out {
		n := 20 + rng.IntN(380)
		if i%4 == 3 {
			n = 750 + rng.IntN(200)
		}
		out[i] = make([]int, n)
		for j := range out[i] {
			out[i][j] = rng.IntN(256)
		}
	}
	return out
}

// An answer is compared as the server wrote it: no number is parsed.
type answer struct{ ids, logprobs, top string }

func ask(t testing.TB, s *testkit.Server, prompt []int) answer {
	body, err := json.Marshal(map[string]any{
		"model": s.Model, "prompt": prompt, "max_tokens": 8, "temperature": 0, "logprobs": 5, "seed": 1,
		"ignore_eos": true, "return_token_ids": true,
	})
	if err != nil {
		t.Error(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/v1/completions", bytes.NewReader(body))
	if err != nil {
		t.Error(err)
		return answer{}
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Error(err)
		return answer{}
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	var got struct {
		Choices []struct {
			IDs      json.RawMessage `json:"token_ids"`
			Logprobs struct {
				Token json.RawMessage `json:"token_logprobs"`
				Top   json.RawMessage `json:"top_logprobs"`
			} `json:"logprobs"`
		} `json:"choices"`
	}
	if err != nil || json.Unmarshal(b, &got) != nil || len(got.Choices) != 1 || len(got.Choices[0].Logprobs.Token) < 10 {
		t.Errorf("status %s, %v: %.300s", resp.Status, err, b)
		return answer{}
	}
	c := got.Choices[0]
	return answer{string(c.IDs), string(c.Logprobs.Token), string(c.Logprobs.Top)}
}

func together(t *testing.T, s *testkit.Server, prompts [][]int) []answer {
	out := make([]answer, len(prompts))
	var wg sync.WaitGroup
	for i, p := range prompts {
		wg.Go(func() { out[i] = ask(t, s, p) })
	}
	wg.Wait()
	return out
}

func different(a, b []answer) int {
	n := 0
	for i := range a {
		if a[i] != b[i] {
			n++
		}
	}
	return n
}

// checkRouting reads what the worker says of itself.
func checkRouting(t *testing.T, dir string, on bool) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "routing-0-*.json"))
	if err != nil || len(files) != map[bool]int{true: 1}[on] {
		t.Fatalf("routing records: %v, %v; want %d", files, err, map[bool]int{true: 1}[on])
	}
	if !on {
		return
	}
	b, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	var r struct {
		Schema  string                    `json:"schema"`
		Linear  map[string]int            `json:"linear"`
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
	if r.Schema != "invar.routing" || r.Worker.Threads != 2 || r.Modules["attention"] != 4 || r.Modules["norm"] != 9 || r.Steps < requests || r.Most <= 512 || softmax == 0 {
		t.Errorf("routing record: %.2000s", b)
	}
}

// A server that was asked to be invariant and has no stage 1 does not start.
func TestServerDoesNotStartHalfInvariant(t *testing.T) {
	place := ready(t)
	text := testkit.LaunchVLLM(t, place, "small-bfloat16", "INVAR_BATCH_INVARIANT=1", "INVAR_CPU_LIBRARY=/nonexistent/libinvar_cpu.so").Ended(t)
	if want := "the stage 1 library /nonexistent/libinvar_cpu.so (named by INVAR_CPU_LIBRARY) does not exist"; !strings.Contains(text, want) {
		t.Errorf("the log does not say %q:\n%s", want, run.LastLines(text, 20))
	}
}

// plugin has vLLM load its plugins again and again in one process: what is
// refused leaves nothing patched, so that the next case meets vLLM as it is.
const plugin = `
import json, os, sys, vllm, vllm.plugins
import vllm.model_executor.layers.utils as U
import vllm.v1.attention.backends.cpu_attn as A
out = {}
for name, change, undo in json.load(sys.stdin):
    exec(change)
    before = (U.dispatch_cpu_unquantized_gemm, A.CPUAttentionMetadataBuilder.build)
    vllm.plugins.plugins_loaded = False
    try:
        vllm.plugins.load_general_plugins()
        error = ""
    except Exception as e:
        error = f"{type(e).__name__}: {e}"
    after = (U.dispatch_cpu_unquantized_gemm, A.CPUAttentionMetadataBuilder.build)
    out[name] = {"error": error, "patched": [a is not b for a, b in zip(before, after)]}
    exec(undo)
print("\n" + json.dumps(out))
`

// What the plugin does in a process that is no server: another release, a
// function of vLLM that is not the known one, vLLM's own switch and a value that
// is none are refused and nothing is patched; then the known release is, whole.
func TestPluginIsWholeOrNotAtAll(t *testing.T) {
	place := ready(t)
	cases := []struct{ name, change, undo, want string }{
		{
			"another release", "was = vllm.__version__; vllm.__version__ = '0.99.1'", "vllm.__version__ = was",
			"vLLM 0.99.1 on the platform cpu is not known; want one of 0.32.0-cpu",
		},
		{
			"another source", "C = A.CPUAttentionMetadataBuilder; was = C.build; C.build = lambda self: None", "C.build = was",
			"build is not that of vLLM 0.32.0",
		},
		{
			"vLLM's own switch", "os.environ['VLLM_BATCH_INVARIANT'] = '1'", "del os.environ['VLLM_BATCH_INVARIANT']",
			"On the CPU it registers Triton kernels that do not run there",
		},
		{
			"another value", "os.environ['INVAR_BATCH_INVARIANT'] = 'yes'", "os.environ['INVAR_BATCH_INVARIANT'] = '1'",
			"INVAR_BATCH_INVARIANT='yes': want 1",
		},
		{"known", "", "", ""},
	}
	var ask [][3]string
	for _, c := range cases {
		ask = append(ask, [3]string{c.name, c.change, c.undo})
	}
	in, err := json.Marshal(ask)
	if err != nil {
		t.Fatal(err)
	}
	env := append(run.Unsetenv(os.Environ(), "VLLM_PLUGINS"), "INVAR_BATCH_INVARIANT=1", "VLLM_CACHE_ROOT="+t.TempDir())
	res, err := run.System{}.Run(t.Context(), run.Cmd{Argv: []string{place.Python, "-c", plugin}, Env: env, Stdin: bytes.NewReader(in)})
	if err != nil {
		t.Fatalf("%v\n%s", err, res.Stderr)
	}
	var got map[string]struct {
		Error   string `json:"error"`
		Patched []bool `json:"patched"`
	}
	if err := json.Unmarshal([]byte(run.LastLines(string(res.Stdout), 1)), &got); err != nil {
		t.Fatalf("%v in %s", err, res.Stdout)
	}
	for _, c := range cases {
		g := got[c.name]
		if !strings.Contains(g.Error, c.want) || (c.want == "") != (g.Error == "") {
			t.Errorf("%s: error %q, want %q", c.name, g.Error, c.want)
		}
		if len(g.Patched) != 2 || g.Patched[0] != (c.want == "") || g.Patched[1] != (c.want == "") {
			t.Errorf("%s: patched %v, want %v", c.name, g.Patched, c.want == "")
		}
	}
}
