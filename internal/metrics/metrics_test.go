package metrics

import (
	"maps"
	"testing"
)

const text = `# HELP vllm:num_requests_running Number of requests.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m"} 3.0
vllm:num_requests_running{engine="1",model_name="m"} 4.0
# TYPE vllm:request_success_total counter
vllm:request_success_total{engine="0",finished_reason="length"} 5.0
vllm:request_success_total{engine="0",finished_reason="stop"} 2.0
vllm:request_success_total{engine="1",finished_reason="length"} 1.0
# TYPE vllm:iteration_tokens_total histogram
vllm:iteration_tokens_total_bucket{engine="0",le="256.0"} 8.0
vllm:iteration_tokens_total_bucket{engine="0",le="512.0"} 9.0
vllm:iteration_tokens_total_bucket{engine="0",le="+Inf"} 10.0
vllm:iteration_tokens_total_count{engine="0"} 10.0
vllm:iteration_tokens_total_sum{engine="0"} 2000.0
vllm:iteration_tokens_total_bucket{engine="1",le="256.0"} 1.0
vllm:iteration_tokens_total_bucket{engine="1",le="512.0"} 1.0
vllm:iteration_tokens_total_bucket{engine="1",le="+Inf"} 1.0
vllm:iteration_tokens_total_count{engine="1"} 1.0
vllm:iteration_tokens_total_sum{engine="1"} 7.0
# TYPE vllm:cache_config_info gauge
vllm:cache_config_info{block_size="16",enable_prefix_caching="True"} 1.0
untyped_thing 2
`

func TestSnapshot(t *testing.T) {
	t.Parallel()
	s, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if !s.HasPrefix("vllm:") || s.HasPrefix("sglang:") {
		t.Error("prefix")
	}
	by, ok := s.Sum("engine", "no_such", "vllm:request_success_total")
	if want := map[string]float64{"0": 7, "1": 1}; !ok || !maps.Equal(by, want) {
		t.Errorf("got %v, want %v", by, want)
	}
	if all, ok := s.Sum("", "vllm:num_requests_running"); !ok || all[""] != 7 {
		t.Errorf("%v", all)
	}
	if _, ok := s.Sum("engine", "no_such"); ok {
		t.Error("a metric that is not there")
	}
	h, ok := s.Histogram("vllm:iteration_tokens_total")
	if !ok || h.Count != 11 || h.Sum != 2007 || h.Above[256] != 2 || h.Above[512] != 1 {
		t.Errorf("%+v", h)
	}
	if _, ok := s.Histogram("vllm:num_requests_running"); ok {
		t.Error("a gauge is no histogram")
	}
	if l := s.Labels("vllm:cache_config_info"); l["enable_prefix_caching"] != "True" {
		t.Errorf("%v", l)
	}
	if v, _ := s.Sum("", "untyped_thing"); v[""] != 2 {
		t.Errorf("%v", v)
	}
	if _, err := Parse([]byte("<html>\n")); err == nil {
		t.Error("no error for what is no metrics")
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(text))
	f.Add([]byte("# TYPE a histogram\na_bucket{le=\"1\"} NaN\na_count -1\n"))
	f.Fuzz(func(_ *testing.T, b []byte) {
		s, err := Parse(b)
		if err != nil {
			return
		}
		for name := range s.families {
			_, _ = s.Sum("engine", name)
			_, _ = s.Histogram(name)
			_ = s.Labels(name)
		}
	})
}
