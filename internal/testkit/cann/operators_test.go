package cann

import (
	"strings"
	"testing"

	"github.com/invar-ops/invar/internal/testkit"
)

// TestOperators calls every operator of the wheel on a simulated device, by both
// ways to aclnn, and compares with float64 on the CPU.
func TestOperators(t *testing.T) {
	t.Parallel()
	py := testkit.Need(t, Environment)
	for _, by := range []Caller{ExecExt, OwnHeader} {
		t.Run(string(by), func(t *testing.T) {
			t.Parallel()
			tree := New(t, Options{})
			tree.Install(t, Package{})
			res, err := Run(t, tree.Env("PYTHONPATH="+Site(t, by)), py.Exe, "-c", `
import torch, torch_npu, batch_invariant_ops
o = torch.ops.batch_invariant_ops
torch.manual_seed(1)
def near(got, want, tol=2e-5):
    got = got.cpu().double()
    assert got.shape == want.shape and torch.allclose(got, want, rtol=tol, atol=tol), (got - want).abs().max()
for dtype, tol in ((torch.float32, 2e-5), (torch.float16, 2e-2), (torch.bfloat16, 8e-2)):
    a, b = torch.randn(17, 64).to(dtype), torch.randn(64, 9).to(dtype)
    A, B = a.npu(), b.npu()
    near(o.npu_mm_batch_invariant(A, B), a.double() @ b.double(), tol)
    near(o.npu_mm_batch_invariant(A.t().contiguous().t(), B), a.double() @ b.double(), tol)
    near(o.npu_matmul_batch_invariant(A.view(17, 1, 64), B), (a.double() @ b.double()).view(17, 1, 9), tol)
    near(o.npu_reduce_sum_batch_invariant(A, -1), a.double().sum(-1), tol)
    near(o.npu_reduce_sum_batch_invariant(A, [0], True), a.double().sum(0, True), tol)
    near(o.npu_reduce_mean_batch_invariant(A, [1], False), a.double().mean(1), tol)
    near(o.npu_log_softmax_batch_invariant(A, -1), a.double().log_softmax(-1), tol)
    q, k = torch.randn(2, 3, 32).to(dtype), torch.randn(2, 5, 32).to(dtype)
    w = (q.double().view(2, 3, 4, 8).transpose(1, 2) @ k.double().view(2, 5, 4, 8).permute(0, 2, 3, 1) * 0.5).softmax(-1)
    want = (w @ k.double().view(2, 5, 4, 8).transpose(1, 2)).transpose(1, 2).reshape(2, 3, 32)
    near(o.npu_fused_infer_attention_score_batch_invariant(q.npu(), k.npu(), k.npu(), num_heads=4, scale=0.5)[0], want, tol)
    rows = [o.npu_mm_batch_invariant(A[:n], B).cpu()[0] for n in (1, 2, 17)]
    assert all(torch.equal(r, rows[0]) for r in rows)
# what vllm-ascend does
lib = torch.library.Library("aten", "IMPL")
lib.impl("aten::mm", o.npu_mm_batch_invariant, "NPU")
x, y = torch.randn(40, 300).npu(), torch.randn(300, 8).npu()
assert torch.equal(torch.mm(x, y).cpu()[:1], torch.mm(x[:1], y).cpu())
print("good")
`)
			if err != nil || !strings.Contains(string(res.Stdout), "good") {
				t.Fatalf("%v\n%s\n%s", err, res.Stdout, res.Stderr)
			}
		})
	}
}
