package invar

import (
	"strings"
	"testing"

	"github.com/invar-ops/invar/internal/cuda"
	"github.com/invar-ops/invar/internal/plan"
)

// TestChooseArches: what is typed for this build, then the devices of this host,
// then the variable; without any of them there is a question and no default.
func TestChooseArches(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name            string
		devices         []int
		arch, soc, list string
		want, why       string
		problem         string
	}{
		{"devices", []int{80, 90}, "", "", "", "8.0,9.0", "the GPUs of this host", ""},
		{"devices before the variable", []int{90}, "", "", "8.0", "9.0", "TORCH_CUDA_ARCH_LIST=8.0 is for hosts without one", ""},
		{"devices before a variable with nonsense", []int{90}, "", "", "nine", "9.0", "the GPUs of this host", ""},
		{"--arch before devices", []int{90}, "9.0,12.0", "", "8.0", "9.0,12.0", "--arch", ""},
		{"--soc before devices", []int{90}, "", "sm_100a", "8.0", "10.0a", "--soc", ""},
		{"--arch before --soc", nil, "9.0", "sm_80", "", "9.0", "--arch", ""},
		{"the variable", nil, "", "", "8.0;9.0+PTX Ada", "8.0,8.9+PTX,9.0+PTX", "TORCH_CUDA_ARCH_LIST", ""},
		{"--arch before the variable", nil, "12.0f", "", "8.0", "12.0f", "--arch", ""},
		{"a variable of blanks", nil, "", "", "  ", "", "", "no GPU was found here"},
		{"nothing", nil, "", "", "", "", "", "no GPU was found here"},
		{"a variable without an entry", nil, "", "", " ; ", "", "", "the list in TORCH_CUDA_ARCH_LIST is empty"},
		{"a variable with nonsense", nil, "", "", "8.0;Hoper", "", "", `"Hoper" is no GPU architecture`},
		{"--arch with nonsense", []int{90}, "90x", "", "", "", "", `"90x" is no GPU architecture`},
	} {
		g := plan.CUDAFacts{Devices: tc.devices}
		chooseArches(&g, Options{SoC: tc.soc, CUDA: CUDAOptions{Arch: tc.arch}}, []string{"TORCH_CUDA_ARCH_LIST=" + tc.list})
		if got := cuda.Join(g.Arches); got != tc.want || !strings.Contains(g.Why, tc.why) {
			t.Errorf("%s: %q because of %q, want %q because of %q", tc.name, got, g.Why, tc.want, tc.why)
		}
		if !strings.Contains(g.Problem, tc.problem) || (g.Problem == "") != (tc.problem == "") || (g.Problem != "" && g.Hint == "") {
			t.Errorf("%s: problem %q with hint %q, want %q", tc.name, g.Problem, g.Hint, tc.problem)
		}
	}
}
