package cann

import (
	"strings"
	"testing"

	"github.com/invar-ops/invar/internal/testkit"
)

// TestTorchNPU runs the real torch_npu on one and on two simulated devices.
func TestTorchNPU(t *testing.T) {
	t.Parallel()
	py := testkit.Need(t, Environment)
	for _, c := range []struct {
		name    string
		devices int
		soc     string
	}{{"one A2", 1, "Ascend910B4"}, {"two A3", 2, "Ascend910_9391"}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			tree := New(t, Options{SoC: c.soc, Devices: c.devices})
			res, err := Run(t, tree.Env(), py.Exe, "-c", `
import torch, torch_npu
n = torch.npu.device_count()
assert torch.npu.is_available() and n == `+string(rune('0'+c.devices))+`, n
assert torch.npu.get_device_name() == "`+c.soc+`", torch.npu.get_device_name()
for i in range(n):
    a = torch.arange(12, dtype=torch.float32).view(3, 4).to(f"npu:{i}")
    assert a.device.index == i
    assert torch.equal((a + 1).cpu(), torch.arange(1, 13, dtype=torch.float32).view(3, 4))
    assert torch.equal((a @ a.t().contiguous()).cpu(), a.cpu() @ a.cpu().t())
    for t in (torch.float16, torch.bfloat16):
        x = torch.tensor([1.0, -2.5, 65504.0, 1e-7, float("inf"), float("nan")])
        assert torch.equal(x.to(t).npu(i).to(torch.float32).cpu().nan_to_num(7), x.to(t).float().nan_to_num(7)), t
s = torch.npu.Stream(); e = torch.npu.Event(); e.record(s); s.synchronize()
try:
    torch.sin(a)
except RuntimeError as problem:
    print("raised", str(problem).splitlines()[0])
print("good")
`)
			if err != nil || !strings.Contains(string(res.Stdout), "good") || !strings.Contains(string(res.Stdout), "raised") {
				t.Fatalf("%v\n%s\n%s", err, res.Stdout, res.Stderr)
			}
		})
	}
}
