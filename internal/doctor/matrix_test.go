package doctor

import (
	"slices"
	"strings"
	"testing"

	"github.com/invar-ops/invar/internal/report"
)

func loaded(t *testing.T) *Data {
	t.Helper()
	d, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// Every row is its own nearest row, with nothing to change.
func TestEachRowIsNearestToItself(t *testing.T) {
	t.Parallel()
	m := loaded(t).Matrix
	for _, r := range m.Rows {
		have := Have{"python": "3.11.9"}
		for _, c := range m.Components {
			if c.Key != "python" && r.value(c.Key) != "main" {
				have[c.Key] = r.value(c.Key)
			}
		}
		if r.VllmAscend == "main" {
			have["vllm_ascend"] = "0.27.2.dev12+gabcdef123"
		}
		best := m.nearest(m.Rows, have)[0]
		if len(best.Changes) != 0 || best.Row != r.VllmAscend {
			t.Errorf("%s: nearest is %s with %s", r.VllmAscend, best.Row, best.Phrase())
		}
	}
}

func TestNearestRow(t *testing.T) {
	t.Parallel()
	m := loaded(t).Matrix
	tests := []struct {
		name string
		have Have
		row  string
		want string
	}{
		{
			"old CANN for a new torch_npu: one toolkit",
			Have{"python": "3.11.9", "cann": "9.0.0", "torch": "2.10.0+cpu", "torch_npu": "2.10.0.post4"},
			"0.22.1rc1", "torch_npu 2.10.0 (recommended, has 2.10.0.post4)",
		},
		{
			"pip is cheaper than a toolkit",
			Have{"python": "3.11.9", "cann": "8.5.1", "torch": "2.9.0", "torch_npu": "2.8.0.post2"},
			"0.19.1rc1", "torch_npu 2.9.0 instead of 2.8.0.post2",
		},
		{
			"vllm-ascend that is installed counts",
			Have{"python": "3.11.9", "cann": "8.5.1", "torch": "2.9.0", "torch_npu": "2.9.0", "vllm_ascend": "0.23.0", "vllm": "0.23.0+empty"},
			"0.19.1rc1", "vLLM 0.19.1 instead of 0.23.0+empty, vllm-ascend 0.19.1rc1 instead of 0.23.0",
		},
		{
			"a newer patch of CANN is near",
			Have{"python": "3.11.9", "cann": "9.1.2", "torch": "2.10.0", "torch_npu": "2.10.0.post4"},
			"0.23.0", "CANN 9.1.0 (recommended, has 9.1.2)",
		},
		{"nothing installed: the newest release", Have{}, "0.23.0", "(not installed)"},
		{"Python that the row does not take", Have{"python": "3.13.1", "cann": "9.1.0", "torch": "2.10.0", "torch_npu": "2.10.0.post4"}, "0.23.0", "Python >=3.10,<3.13 instead of 3.13.1"},
		{"a checkout belongs to its release", Have{"python": "3.11.9", "cann": "8.5.0", "torch": "2.9.0", "torch_npu": "2.9.0", "vllm": "0.15.0+empty", "vllm_ascend": "0.15.0rc1.dev33+gdb2f630"}, "0.15.0rc1", "nothing to change"},
		{"an alpha is no patch", Have{"python": "3.11.9", "cann": "8.5.0.alpha001", "torch": "2.9.0", "torch_npu": "2.9.0"}, "0.19.1rc1", "CANN 8.5.1 instead of 8.5.0.alpha001"},
	}
	for _, tt := range tests {
		best := m.nearest(m.Usable("ascend910b"), tt.have)[0]
		if best.Row != tt.row || !strings.Contains(best.Phrase(), tt.want) {
			t.Errorf("%s: got %s: %s; want %s: %s", tt.name, best.Row, best.Phrase(), tt.row, tt.want)
		}
	}
}

func TestReferencesThatDisagree(t *testing.T) {
	t.Parallel()
	m := loaded(t).Matrix
	have := Have{"python": "3.11.9", "cann": "9.0.0", "torch": "2.9.0", "torch_npu": "2.9.0.post1+git4c901a4", "vllm": "0.18.0", "vllm_ascend": "0.18.0", "triton": "3.2.0.dev20260322"}
	best := m.nearest(m.Rows, have)[0]
	if best.Row != "0.18.0" || len(best.Changes) != 0 || len(best.Notes) != 1 || !strings.Contains(best.Notes[0], "8.5.1") || !strings.Contains(best.Notes[0], "9.0.0") {
		t.Errorf("%s: %s, notes %v", best.Row, best.Phrase(), best.Notes)
	}
}

func TestCheckoutsWithoutTagsAreNotGuessed(t *testing.T) {
	t.Parallel()
	m := loaded(t).Matrix
	best := m.nearest(m.Rows, Have{"python": "3.11.9", "cann": "9.1.0", "torch": "2.10.0", "torch_npu": "2.10.0.post4", "vllm_ascend": "0.1.dev1+g96d6fa7.d20250421"})[0]
	if best.hard != 0 || !slices.ContainsFunc(best.Notes, func(n string) bool { return strings.Contains(n, "96d6fa7") }) {
		t.Errorf("%s: %s, notes %v", best.Row, best.Phrase(), best.Notes)
	}
}

func cannTree(v string) map[string]string {
	dir := "usr/local/Ascend/cann-" + v + "/"
	return map[string]string{
		dir + "ascend_toolkit_install.info": "version=" + v + "\ninnerversion=V100R001C11SPC001B243\narch=x86_64\n",
		dir + "include/acl/acl.h":           "", dir + "compiler/ccec_compiler/bin/bisheng": "+x", dir + "set_env.sh": "export ASCEND_HOME_PATH=x\n",
		"usr/local/Ascend/cann": "->cann-" + v,
	}
}

func ascendPython() map[string]string {
	return with(python311(), dist("setuptools", "80.1"), dist("wheel", "0.45"), dist("ninja", "1.11"), dist("numpy", "2.1"), dist("pyyaml", "6.0"), dist("pip", "25.0"))
}

func TestMatrixInARoot(t *testing.T) {
	t.Parallel()
	good := with(debian(), ascendPython(), gcc("12"), cannTree("9.1.0"), torch("2.10.0", ""), dist("torch-npu", "2.10.0.post4"))
	r := examine(t, "ascend910b", good)
	if err := r.Err(); err != nil {
		t.Errorf("a good root: %v %v", err, r.ids(report.Fail))
	}
	expect(t, r, "matrix", report.Pass, "vllm-ascend 0.23.0", "nothing to change")

	r = examine(t, "ascend910b", with(debian(), ascendPython(), gcc("12"), cannTree("8.5.1"), torch("2.10.0", ""), dist("torch-npu", "2.9.0")))
	expect(t, r, "torch-pair", report.Fail, "torch 2.9.0", "undefined symbol")
	expect(t, r, "matrix", report.Fail, "torch 2.9.0 instead of 2.10.0", "torch==2.9.0+cpu")

	// Both CANNs are there: the advice is to source the other one.
	two := with(good, map[string]string{"usr/local/Ascend/cann": "->cann-8.5.1"}, func() map[string]string {
		m := cannTree("8.5.1")
		delete(m, "usr/local/Ascend/cann")
		return m
	}())
	r = examine(t, "ascend910b", two)
	expect(t, r, "cann-several", Warn, "9.1.0 in /usr/local/Ascend/cann-9.1.0", "in use: /usr/local/Ascend/cann-8.5.1")
	expect(t, r, "matrix", report.Fail, "source /usr/local/Ascend/cann-9.1.0/set_env.sh")

	r = examine(t, "ascend950", good)
	expect(t, r, "matrix", report.Pass, "vllm-ascend main")
	r = examine(t, "ascend910b", with(debian(), ascendPython(), gcc("12"), cannTree("8.2.RC1"), torch("2.7.1", ""), dist("torch-npu", "2.7.1.dev20250724")))
	expect(t, r, "matrix", report.Fail, "has no batch-invariant mode here")
	expect(t, r, "cann", report.Fail, ">= 8.5.0", "8.2.RC1")
}
