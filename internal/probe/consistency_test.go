package probe

import (
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
