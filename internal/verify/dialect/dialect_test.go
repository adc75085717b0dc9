package dialect

import (
	"net/http"
	"slices"
	"testing"

	"github.com/invar-ops/invar/internal/metrics"
	"github.com/invar-ops/invar/internal/openai"
)

func TestRecognise(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text  string
		tells bool
		want  string
	}{
		{"vllm:num_requests_running 0\n", true, "vllm"},
		{"sglang:num_running_reqs 0\n", false, "sglang"},
		{"python_gc 1\n", true, "vllm"},
		{"python_gc 1\n", false, "other"},
		{"", false, "other"},
	} {
		s, err := metrics.Parse([]byte(c.text))
		if err != nil {
			t.Fatal(err)
		}
		if e, err := Recognise(s, c.tells); err != nil || e.Name != c.want {
			t.Errorf("%q: %s, %v, want %s", c.text, e.Name, err, c.want)
		}
	}
}

// TestFields: each engine gets its own names, and nothing that it does not know.
func TestFields(t *testing.T) {
	t.Parallel()
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]struct{ salt, rankField, rankHeader string }{
		"vllm": {"cache_salt", "", "2"}, "sglang": {"extra_key", "data_parallel_rank", ""}, "other": {},
	}
	for _, e := range all {
		w, ok := want[e.Name]
		if !ok || e.Source == "" {
			t.Errorf("%s has no source, or no line here", e.Name)
		}
		f, h := openai.Fields{}, http.Header{}
		if e.Set(f, Salt, "s") != (w.salt != "") || w.salt != "" && f[w.salt] != "s" {
			t.Errorf("%s: %v", e.Name, f)
		}
		e.Address(f, h, 2)
		if h.Get("X-data-parallel-rank") != w.rankHeader || (w.rankField != "") != (f["data_parallel_rank"] == 2 && f["routed_dp_rank"] == 2) {
			t.Errorf("%s: %v %v", e.Name, f, h)
		}
		for word, names := range e.Metrics {
			if len(names) == 0 || slices.Contains(names, "") {
				t.Errorf("%s: %s has no name", e.Name, word)
			}
		}
	}
}
