package capacity

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/invar-ops/invar/internal/metrics"
)

// TestLogs: users' own logs, with the right numbers of each.
func TestLogs(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][]Cache{
		"01-npu-v091-kv-then-fail.log":         {{Tokens: 209792, Length: 16384, Concurrency: 12.80, WeightsGiB: 14.2713, Failed: true}},
		"02-npu-hybrid-ratio-mismatch-oom.log": {{Tokens: 282240, Length: 4096, Concurrency: 210.07, Failed: true, Notes: []string{"do not fit together"}}},
		"04-v1-2042016-tokens.log":             {{Tokens: 2042016, Length: 2048, Concurrency: 997.08}},
		"05-v1-model-loading-gib.log":          {{Tokens: 158656, Length: 32768, Concurrency: 4.84, WeightsGiB: 14.9889}},
		"07-v0-229-blocks.log":                 {{Blocks: 229, BlockSize: 16, Tokens: 3664, Notes: []string{"V0's default"}}},
		"08-mtp-padding-layers.log":            {{Tokens: 1823372, Length: 1048576, Concurrency: 1.74, Waste: 6.25}},
		"10-v011-available-kv.log":             {{Tokens: 42656, Length: 32768, Concurrency: 1.30, MemoryGiB: 6.51}},
		"11-preemption-v0.log":                 {{Preemptions: 1}},
		"13-preemption-v1-resumed.log":         {{Preemptions: 2}},
		"14-usage-lines-glued.log":             {{Usage: 91.9, Notes: []string{"preemption is near"}}},
		"16-npu-no-memory-shared-card.log":     {{Refused: true, Notes: []string{"another process"}}},
		"17-npu-kv-cache-memory-hint.log":      {{MemoryGiB: 53.46}},
		"19-fp8-max-len-estimate.log":          {{Tokens: 230528, Length: 100000, Concurrency: 2.31, MemoryGiB: 10.55}, {Refused: true, Length: 221000, NeedGiB: 10.12, MemoryGiB: 5.59, LongestFits: 122080}},
		"20-kv-needed-wrapped-line.log":        {{Refused: true, Length: 100000, NeedGiB: 4.26, MemoryGiB: 4.25}},
		"22-sglang-comparison.log":             {{Tokens: 178880, MemoryGiB: 8.11, Notes: []string{"another engine"}}},
		"32-tt-small-kv.log":                   {{Tokens: 7584}},
	} {
		b, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		got, err := Log(string(b))
		if err != nil {
			t.Fatal(err)
		}
		if len(got) != len(want) {
			t.Errorf("%s: %d starts, want %d: %+v", name, len(got), len(want), got)
			continue
		}
		for i, w := range want {
			g := got[i]
			if len(w.Notes) > 0 && !strings.Contains(strings.Join(g.Notes, "\n"), w.Notes[0]) || len(w.Notes) == 0 && len(g.Notes) > 0 {
				t.Errorf("%s: notes %q, want %q", name, g.Notes, w.Notes)
			}
			g.Notes, w.Notes = nil, nil
			if !same(g, w) {
				t.Errorf("%s:\n got %+v\nwant %+v", name, g, w)
			}
		}
	}
	files, err := filepath.Glob("testdata/*.log")
	if err != nil || len(files) != 16 {
		t.Errorf("%d logs (%v)", len(files), err)
	}
}

// TestLines: the same facts in the words of other releases and devices.
func TestLines(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Cache{
		"INFO [kv_cache_utils.py:2327] CPU KV cache size: 16,384 tokens, Maximum concurrency for 2,048 tokens per request: 8.00x": {Tokens: 16384, Length: 2048, Concurrency: 8},
		"GPU + host KV cache size: 1,000 tokens, Maximum concurrency for 500 tokens per request: 2.00x":                           {Tokens: 1000, Length: 500, Concurrency: 2},
		"# npu blocks: 2110, # CPU blocks: 0\nMaximum concurrency for 8192 tokens per request: 32.97x":                            {Blocks: 2110, BlockSize: 128, Tokens: 270080, Length: 8192, Concurrency: 32.97},
		"# GPU blocks: 27098, # CPU blocks: 2048\nMaximum concurrency for 32768 tokens per request: 13.23x":                       {Blocks: 27098, BlockSize: 16, Tokens: 433568, Length: 32768, Concurrency: 13.23},
	} {
		got, err := Log(text)
		if err != nil || len(got) != 1 || !same(got[0], want) {
			t.Errorf("%s:\n got %+v (%v)\nwant %+v", text, got, err, want)
		}
	}
	const lately = "Engine 000: Avg prompt throughput: 1.0 tokens/s, Running: 2 reqs, Waiting: 1 reqs, Preemptions: 2, GPU KV cache usage: 50.0%\n"
	if got, err := Log(lately + lately); err != nil || len(got) != 1 || got[0].Preemptions != 4 {
		t.Errorf("two lines of 2 preemptions: %+v (%v)", got, err)
	}
	c, err := Log("# NPU blocks: 100, # CPU blocks: 0")
	if err != nil || len(c) != 1 || c[0].Tokens != 1600 {
		t.Fatalf("%+v (%v)", c, err)
	}
	if c[0].SetBlockSize(128); c[0].Tokens != 12800 || len(c[0].Notes) > 0 {
		t.Errorf("--block-size 128: %+v, want 12800 tokens", c[0])
	}
}

func same(a, b Cache) bool {
	a.Notes, b.Notes = nil, nil
	return a.Tokens == b.Tokens && a.Blocks == b.Blocks && a.BlockSize == b.BlockSize && a.Length == b.Length && a.Concurrency == b.Concurrency &&
		a.MemoryGiB == b.MemoryGiB && a.WeightsGiB == b.WeightsGiB && a.NeedGiB == b.NeedGiB && a.LongestFits == b.LongestFits &&
		a.Preemptions == b.Preemptions && a.Usage == b.Usage && a.Waste == b.Waste && a.Refused == b.Refused && a.Failed == b.Failed
}

func TestJudge(t *testing.T) {
	t.Parallel()
	yes, no := true, false
	for _, c := range []struct {
		name   string
		cache  Cache
		load   Load
		fits   *bool
		most   int
		change string
	}{
		{"exactly", Cache{Tokens: 4096, BlockSize: 128}, Load{Requests: 4, Tokens: 1024}, &yes, 4, ""},
		{"one more", Cache{Tokens: 4096, BlockSize: 128}, Load{Requests: 5, Tokens: 1024}, &no, 4, "--max-num-seqs 4: at most 4096 tokens"},
		{"blocks are whole", Cache{Tokens: 4096, BlockSize: 128}, Load{Requests: 4, Tokens: 1025}, &no, 3, "--max-model-len 1024: 4 requests fit"},
		{"the server's own limits", Cache{Tokens: 42656, Length: 32768, MaxSeqs: 2}, Load{}, &no, 1, "--max-num-seqs 1"},
		{"memory", Cache{Tokens: 1000, MemoryGiB: 2}, Load{Requests: 2, Tokens: 1000}, &no, 1, "2.00 GiB more for the KV cache"},
		{"hybrid", Cache{Tokens: 282240, Length: 4096, Concurrency: 210.07}, Load{Requests: 200, Tokens: 4096}, &yes, 210, ""},
		{"refused", Cache{Refused: true, Length: 221000, NeedGiB: 10.12, MemoryGiB: 5.59, LongestFits: 122080}, Load{Requests: 1}, &no, 0, "--max-model-len 122080"},
		{"refused without an estimate", Cache{Refused: true, Length: 100000, NeedGiB: 4.26, MemoryGiB: 4.25}, Load{}, &no, 0, "--max-model-len 99765"},
		{"no load", Cache{Tokens: 1000}, Load{}, nil, 0, ""},
		{"no cache", Cache{}, Load{Requests: 1, Tokens: 1}, nil, 0, ""},
	} {
		a := Judge(c.cache, c.load)
		if (a.Fits == nil) != (c.fits == nil) || a.Fits != nil && *a.Fits != *c.fits || a.Most != c.most {
			t.Errorf("%s: %+v", c.name, a)
		}
		if !strings.Contains(strings.Join(a.Change, "\n"), c.change) || c.change == "" && len(a.Change) > 0 {
			t.Errorf("%s: changes %q, want %q", c.name, a.Change, c.change)
		}
	}
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	s, err := metrics.Parse([]byte(`# TYPE vllm:cache_config_info gauge
vllm:cache_config_info{block_size="16",engine="0",num_gpu_blocks="229"} 1.0
# TYPE vllm:num_preemptions_total counter
vllm:num_preemptions_total{engine="0",model_name="m"} 2.0
vllm:num_preemptions_total{engine="1",model_name="m"} 1.0
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.5
`))
	if err != nil {
		t.Fatal(err)
	}
	if c := FromMetrics(s); c.Tokens != 3664 || c.Preemptions != 3 || c.Usage != 50 {
		t.Errorf("%+v", c)
	}
}

func FuzzLog(f *testing.F) {
	f.Add("GPU KV cache size: 1,0 tokens\nMaximum concurrency for 1 tokens per request: 1.1.1x")
	f.Fuzz(func(t *testing.T, text string) {
		caches, err := Log(text)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range caches {
			Judge(c, Load{Requests: 3, Tokens: 5})
		}
	})
}
