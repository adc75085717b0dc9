package vllm_test

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/invar-ops/invar/internal/run"
	"github.com/invar-ops/invar/internal/testkit"
)

// load has vLLM's own worker load models of random weights, one after the
// other, with the plugin active, and says what each came to.
const load = `
import json, os, socket, sys, tempfile
import vllm.plugins
vllm.plugins.load_general_plugins()
from vllm.config import set_current_vllm_config
from vllm.engine.arg_utils import EngineArgs
from vllm.v1.worker.cpu_worker import CPUWorker
with socket.socket() as s:
    s.bind(("127.0.0.1", 0))
    address = "tcp://127.0.0.1:%d" % s.getsockname()[1]
out = {}
for name, config in json.load(sys.stdin).items():
    folder = tempfile.mkdtemp(dir=sys.argv[1])
    with open(os.path.join(folder, "config.json"), "w") as f:
        json.dump(config, f)
    try:
        args = EngineArgs(
            model=folder, skip_tokenizer_init=True, load_format="dummy", dtype="float32", enforce_eager=True, max_model_len=128
        )
        config = args.create_engine_config()
        with set_current_vllm_config(config):
            worker = CPUWorker(config, 0, 0, address, True)
            worker.init_device()
            worker.load_model()
        out[name] = ""
    except Exception as e:
        out[name] = f"{type(e).__name__}: {e}"
print("\n" + json.dumps(out))
`

// tiny is the configuration of a Llama, with changes.
func tiny(change map[string]any) map[string]any {
	c := map[string]any{
		"architectures": []string{"LlamaForCausalLM"}, "model_type": "llama", "hidden_size": 128, "intermediate_size": 256,
		"num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 64, "vocab_size": 256,
		"max_position_embeddings": 128, "hidden_act": "silu", "rms_norm_eps": 1e-5, "eos_token_id": 0,
		"rope_parameters": map[string]any{"rope_type": "default", "rope_theta": json.Number("10000.0")},
		"attention_bias":  false, "mlp_bias": false, "tie_word_embeddings": false,
	}
	maps.Copy(c, change)
	return c
}

// Models whose attention is not shown to be exact row by row are refused by the
// worker that loads them, each for its own reason, and a plain one is not.
func TestModelsThatAreRefused(t *testing.T) {
	place := ready(t)
	both := func(kind string) []string { return []string{kind, kind} }
	cases := map[string]struct {
		config map[string]any
		want   string
	}{
		"plain": {tiny(nil), ""},
		"sliding window": {
			tiny(map[string]any{"layer_types": []string{"full_attention", "sliding_attention"}, "sliding_window": 32}),
			"attention model.layers.1.self_attn.attn: sliding_window is",
		},
		"Mistral's window": {
			tiny(map[string]any{"architectures": []string{"MistralForCausalLM"}, "model_type": "mistral", "sliding_window": 32}),
			"attention model.layers.0.self_attn.attn: sliding_window is",
		},
		"soft cap": {
			tiny(map[string]any{
				"architectures": []string{"Gemma2ForCausalLM"}, "model_type": "gemma2", "layer_types": both("full_attention"),
				"query_pre_attn_scalar": 64, "attn_logit_softcapping": json.Number("50.0"), "final_logit_softcapping": json.Number("30.0"),
				"hidden_activation": "gelu_pytorch_tanh", "sliding_window": 32, "tie_word_embeddings": true,
			}),
			"logits_soft_cap is 50.0",
		},
		"ALiBi": {
			map[string]any{
				"architectures": []string{"FalconForCausalLM"}, "model_type": "falcon", "hidden_size": 128, "num_hidden_layers": 1,
				"num_attention_heads": 2, "vocab_size": 256, "alibi": true, "new_decoder_architecture": false, "multi_query": false,
				"parallel_attn": false, "bias": false, "layer_norm_epsilon": 1e-5, "max_position_embeddings": 128, "ffn_hidden_size": 256,
				"activation": "gelu", "eos_token_id": 0, "bos_token_id": 0,
			},
			"alibi_slopes is",
		},
		"encoder": {
			map[string]any{
				"architectures": []string{"BertModel"}, "model_type": "bert", "hidden_size": 128, "num_hidden_layers": 1,
				"num_attention_heads": 2, "intermediate_size": 256, "vocab_size": 256, "max_position_embeddings": 128,
				"type_vocab_size": 2, "hidden_act": "gelu", "layer_norm_eps": 1e-5, "pad_token_id": 0,
			},
			"runner_type is 'pooling'",
		},
	}
	configs := map[string]any{}
	for name, c := range cases {
		configs[name] = c.config
	}
	in, err := json.Marshal(configs)
	if err != nil {
		t.Fatal(err)
	}
	env := append(run.Unsetenv(os.Environ(), "VLLM_PLUGINS"), "INVAR_BATCH_INVARIANT=1", "VLLM_CACHE_ROOT="+t.TempDir(), "HF_HUB_OFFLINE=1")
	for k, v := range place.Serve.Environment {
		env = run.Setenv(env, k, v)
	}
	res, err := run.System{}.Run(t.Context(), run.Cmd{Argv: []string{place.Python, "-c", load, t.TempDir()}, Env: env, Stdin: strings.NewReader(string(in))})
	if err != nil {
		t.Fatalf("%v\n%s", err, res.Stderr)
	}
	var got map[string]string
	if err := json.Unmarshal([]byte(run.LastLines(string(res.Stdout), 1)), &got); err != nil {
		t.Fatalf("%v in %s", err, res.Stdout)
	}
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		c := cases[name]
		if text, ok := got[name]; !ok || !strings.Contains(text, c.want) || (c.want == "") != (text == "") || c.want != "" && !strings.HasPrefix(text, "RefusedError: ") {
			t.Errorf("%s: got %q, want a refusal with %q", name, text, c.want)
		}
	}
}

// A server of such a model does not start, and says why.
func TestServerOfARefusedModelDoesNotStart(t *testing.T) {
	place := ready(t)
	window := `{"layer_types": ["full_attention", "full_attention", "full_attention", "sliding_attention"], "sliding_window": 512}`
	place.Serve.Arguments = append(slices.Clone(place.Serve.Arguments), "--hf-overrides", window)
	text := testkit.LaunchVLLM(t, place, "small-bfloat16", "INVAR_BATCH_INVARIANT=1").Ended(t)
	for _, want := range []string{"sliding_window is", "A sliding window is not shown to be exact row by row"} {
		if !strings.Contains(text, want) {
			t.Errorf("the log does not say %q:\n%s", want, run.LastLines(text, 30))
		}
	}
}
