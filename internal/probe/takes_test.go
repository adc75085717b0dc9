package probe

import (
	"testing"

	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/target"
)

func TestFits(t *testing.T) {
	t.Parallel()
	const dim = `int|int\[\d*\]\??|int\?`
	for _, c := range []struct {
		schema string
		types  []string
		ok     bool
	}{
		{"b::mm(Tensor a, Tensor b) -> Tensor", []string{"Tensor", "Tensor"}, true},
		{"b::mm(Tensor a, Tensor b, float scale=1.0) -> Tensor", []string{"Tensor", "Tensor"}, true},
		{"b::mm(Tensor a, Tensor b, *, bool[] x=[True, False]) -> Tensor", []string{"Tensor", "Tensor"}, true},
		{"b::mm(Tensor a, Tensor b, Tensor c) -> Tensor", []string{"Tensor", "Tensor"}, false},
		{"b::mm(Tensor a, Tensor b, *, int n) -> Tensor", []string{"Tensor", "Tensor"}, false},
		{"b::mm(Tensor a, *, Tensor b) -> Tensor", []string{"Tensor", "Tensor"}, false},
		{"b::mm(Tensor a) -> Tensor", []string{"Tensor", "Tensor"}, false},
		{"b::sum(Tensor x, int[1] dim, bool keepdim=False) -> Tensor", []string{"Tensor", dim, "bool"}, true},
		{"b::sum(Tensor x, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor", []string{"Tensor", dim, "bool"}, true},
		{"b::sum(Tensor x, int dim, bool keepdim=False) -> Tensor", []string{"Tensor", dim, "bool"}, true},
		{"b::sum(Tensor x, bool keepdim=False) -> Tensor", []string{"Tensor", dim, "bool"}, false},
		{"b::f.out(Tensor a, *, Tensor(a!) out) -> (Tensor(a!), Tensor(b!))", []string{"Tensor"}, false},
		{"no schema", nil, false},
	} {
		if got := fits(c.schema, c.types); got != c.ok {
			t.Errorf("%s with %v: %v", c.schema, c.types, got)
		}
	}
}

// TestTakes asks the targets for what vllm-ascend calls.
func TestTakes(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"ascend910b", "ascend910_93", "ascend950"} {
		tg, err := target.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		p := &prober{target: tg}
		for _, c := range []struct {
			operator string
			schemas  []string
			ok       bool
		}{
			{"npu_mm_batch_invariant", []string{"b::npu_mm_batch_invariant(Tensor a, Tensor b) -> Tensor"}, true},
			{"npu_mm_batch_invariant", []string{"b::npu_mm_batch_invariant(Tensor a) -> Tensor"}, false},
			{"npu_reduce_sum_batch_invariant", []string{"b::s(Tensor x, int[1] dim, bool keepdim=False) -> Tensor"}, true},
			{"npu_reduce_sum_batch_invariant", []string{"b::s(Tensor x) -> Tensor"}, false},
			{"npu_fused_infer_attention_score_batch_invariant", []string{"b::f(Tensor q, Tensor k, Tensor v) -> (Tensor, Tensor)", "b::f.out(Tensor q, *, Tensor(a!) o) -> Tensor(a!)"}, true},
			{"npu_fused_infer_attention_score_batch_invariant", []string{"b::f(Tensor q, Tensor k, Tensor v) -> (Tensor, Tensor)"}, false},
			{"something_else", nil, true},
		} {
			got, ok := p.takes(operatorFacts{Name: c.operator, Found: true, Schemas: c.schemas})
			if ok != c.ok || !ok && (got.Status != report.Fail || got.Hint == "") {
				t.Errorf("%s: %s %v: %v, %+v", name, c.operator, c.schemas, ok, got)
			}
		}
	}
}
