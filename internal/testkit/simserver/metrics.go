package simserver

import (
	"fmt"
	"net/http"
)

// metrics writes the counters under the names of vLLM or SGLang.
func (s *Server) metrics(w http.ResponseWriter, r *http.Request) {
	if s.cfg.has(NoStats) {
		http.NotFound(w, r)
		return
	}
	p, label := "vllm", "engine"
	if s.cfg.SGLang {
		p, label = "sglang", "dp_rank"
	}
	line := func(name, kind string, value func(stats) float64) {
		_, _ = fmt.Fprintf(w, "# TYPE %s:%s %s\n", p, name, kind)
		for _, e := range s.engines {
			_, _ = fmt.Fprintf(w, "%s:%s{%s=\"%d\",model_name=%q} %g\n", p, name, label, e.rank, Model, value(s.read(e)))
		}
	}
	line("prompt_tokens_total", "counter", func(x stats) float64 { return x.prompt })
	line("generation_tokens_total", "counter", func(x stats) float64 { return x.generated })
	if s.cfg.SGLang {
		line("num_requests_total", "counter", func(x stats) float64 { return x.finished })
		line("num_retracted_reqs_total", "counter", func(x stats) float64 { return x.preempted })
		line("num_running_reqs", "gauge", func(x stats) float64 { return x.running })
		line("cached_tokens_total", "counter", func(x stats) float64 { return x.hits })
		return
	}
	line("request_success_total", "counter", func(x stats) float64 { return x.finished })
	line("num_preemptions_total", "counter", func(x stats) float64 { return x.preempted })
	line("prefix_cache_queries_total", "counter", func(x stats) float64 { return x.queries })
	line("prefix_cache_hits_total", "counter", func(x stats) float64 { return x.hits })
	line("num_requests_running", "gauge", func(x stats) float64 { return x.running })
	_, _ = fmt.Fprintf(w, "# TYPE vllm:cache_config_info gauge\nvllm:cache_config_info{block_size=\"16\",enable_prefix_caching=\"%s\",engine=\"0\"} 1\n", python(!s.cfg.NoCache))
	_, _ = fmt.Fprint(w, "# TYPE vllm:iteration_tokens_total histogram\n")
	for _, e := range s.engines {
		x := s.read(e)
		for le, n := range map[string]float64{"256.0": x.steps - x.over256, "512.0": x.steps - x.over512, "+Inf": x.steps} {
			_, _ = fmt.Fprintf(w, "vllm:iteration_tokens_total_bucket{engine=\"%d\",le=\"%s\"} %g\n", e.rank, le, n)
		}
		_, _ = fmt.Fprintf(w, "vllm:iteration_tokens_total_count{engine=\"%d\"} %g\nvllm:iteration_tokens_total_sum{engine=\"%d\"} %g\n", e.rank, x.steps, e.rank, x.tokens)
	}
}

func python(b bool) string {
	if b {
		return "True"
	}
	return "False"
}

// read is what an engine's counters say, or claim.
func (s *Server) read(e *engine) stats {
	e.mu.Lock()
	defer e.mu.Unlock()
	x := e.stats
	x.running = float64(len(e.running))
	switch {
	case s.cfg.has(FrozenStats):
		return stats{steps: 7, tokens: 700, generated: 300}
	case s.cfg.has(HappyStats):
		x.steps /= 4
	}
	return x
}
