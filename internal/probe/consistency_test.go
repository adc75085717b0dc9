package probe

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/invar-ops/invar/internal/install"
)

func TestConsistency(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		built, here string
		knob        bool
		says, not   string
	}{
		{"9.1.0", "", false, "CANN 9.1.0 has none (>= 9.2.0 has)", "could serve"},
		{"8.3.RC2", "", true, "CANN 8.3.RC2 has none", "could serve"},
		{"9.2.0", "", true, "torch_npu.npu.set_deterministic_level(3)", "ACL_OPT"},
		{"9.2.0", "", false, "aclrtSetSysParamOpt(ACL_OPT_DETERMINISTIC, 3)", "set_deterministic_level"},
		{"9.1.0", "9.10.0", true, "CANN 9.10.0 has one", "has none"},
		{"9.2.0", "9.1.0", true, "CANN 9.1.0 has none", "could serve"},
		{"", "", true, "not known", "could serve"},
	} {
		p := &prober{cann: c.here, receipt: install.Receipt{Release: &install.Release{CANNVersion: c.built}}}
		p.facts = &facts{NPU: &npuFacts{TorchNPU: "2.10.0.post4", LevelKnob: c.knob}}
		p.consistency()
		if len(p.extra) != 1 {
			t.Fatalf("%+v", p.extra)
		}
		text := p.extra[0].Text
		if !strings.Contains(text, c.says) || strings.Contains(text, c.not) {
			t.Errorf("CANN %q, built with %q: %s", c.here, c.built, text)
		}
		if strings.Contains(text, "could serve") && !strings.Contains(text, "a part of the operators") {
			t.Errorf("its limits are not said: %s", text)
		}
	}
}

// TestContrary finds what base images set against determinism, and is silent
// about what serves it.
func TestContrary(t *testing.T) {
	t.Parallel()
	for env, want := range map[string]string{
		"LCCL_DETERMINISTIC=0":          "vllm-ascend sets it to 1",
		"ATB_MATMUL_SHUFFLE_K_ENABLE=1": "shuffle their reduction",
		"HCCL_DETERMINISTIC=False":      "strict",
		"HCCL_DETERMINISTIC=0":          "strict",
		"LCCL_DETERMINISTIC=1":          "",
		"ATB_MATMUL_SHUFFLE_K_ENABLE=0": "",
		"HCCL_DETERMINISTIC=strict":     "",
		"HCCL_DETERMINISTIC=true":       "",
		"HCCL_DETERMINISTIC=":           "",
	} {
		p := &prober{Options: Options{Env: []string{env}}}
		p.contrary()
		text := ""
		for _, o := range p.extra {
			text += o.Name + " " + o.Text
		}
		if (text == "") != (want == "") || !strings.Contains(text, want) || want != "" && !strings.Contains(text, env) {
			t.Errorf("%s: %q", env, text)
		}
	}
}

// TestFallback says what vllm-ascend takes where the import fails.
func TestFallback(t *testing.T) {
	t.Parallel()
	with, without := t.TempDir(), t.TempDir()
	if err := os.MkdirAll(filepath.Join(with, "triton"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(with, "triton", "__init__.py"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		site  string
		facts *facts
		says  string
	}{
		{with, nil, "attention is not covered"},
		{without, nil, "without batch invariance"},
		{without, &facts{NPU: &npuFacts{Triton: true}}, "attention is not covered"},
		{with, &facts{NPU: &npuFacts{}}, "without batch invariance"},
	} {
		p := &prober{facts: c.facts, receipt: install.Receipt{Python: install.Env{Paths: []string{c.site}}}}
		p.fallback()
		if len(p.extra) != 1 || !strings.Contains(p.extra[0].Text, c.says) {
			t.Errorf("%+v: %+v", c, p.extra)
		}
	}
}
