package chip

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/invar-ops/invar/internal/target"
)

func rules(t *testing.T) *Rules {
	t.Helper()
	r, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A family leads to a target that exists, and what is listed for it matches
// the chips of that target.
func TestFamiliesFitTargets(t *testing.T) {
	t.Parallel()
	r := rules(t)
	for _, f := range r.Families() {
		if f.Target == "" {
			if r.Refused(f.ID, "") == "" {
				t.Errorf("%s has neither a target nor a reason", f.ID)
			}
			continue
		}
		if _, err := os.Stat(filepath.Join("../../../targets", f.Target)); err != nil {
			t.Errorf("%s: %v", f.ID, err)
		}
		tg, err := target.Find(f.Target)
		if err != nil {
			t.Errorf("%s: %v", f.ID, err)
			continue
		}
		for _, sm := range f.SMs {
			if !matches(t, tg, sm) {
				t.Errorf("target %s does not know %s", f.Target, sm)
			}
		}
		for _, n := range r.ascend.Names {
			for _, soc := range n.Listed {
				if n.Family == f.ID && !matches(t, tg, soc) {
					t.Errorf("target %s does not know %s", f.Target, soc)
				}
			}
		}
	}
}

func matches(t *testing.T, tg target.Target, soc string) bool {
	t.Helper()
	return slices.ContainsFunc(tg.Chips, func(c target.Chip) bool { return regexp.MustCompile(c.Pattern).MatchString(soc) })
}

func TestNames(t *testing.T) {
	t.Parallel()
	r := rules(t)
	for _, tt := range []struct{ name, npu, family, soc string }{
		{"910B4", "", "ascend910b", "ascend910b4"},
		{"Ascend 910B4-1", "", "ascend910b", "ascend910b4-1"},
		{"Ascend910B2C", "", "ascend910b", "ascend910b2c"},
		{"910b7", "", "ascend910b", "ascend910b7"},
		{"910B", "", "ascend910", ""},
		{"Ascend 910A", "", "ascend910", "ascend910a"},
		{"910PremiumA", "", "ascend910", "ascend910premiuma"},
		{"910ProB", "", "ascend910", "ascend910prob"},
		{"Ascend910", "9392", "ascend910_93", "ascend910_9392"},
		{"Ascend910", "9363", "ascend910_93", "ascend910_9363"},
		{"Ascend910", "", "ascend910_93", ""},
		{"Ascend910_9391", "", "ascend910_93", "ascend910_9391"},
		{"Ascend910_95", "", "ascend950", ""},
		{"ascend910_9579", "", "ascend950", ""},
		{"Ascend910", "9579", "ascend950", ""},
		{"Ascend950PR", "9579", "ascend950", "ascend950pr_9579"},
		{"Ascend950PR", "957bx", "ascend950", "ascend950pr_957bx"},
		{"Ascend950DT", "", "ascend950", ""},
		{"ascend950pr_958a", "", "ascend950", "ascend950pr_958a"},
		{"A2G3", "", "ascend910b", ""},
		{"I2n", "", "ascend310p", ""},
		{"310P3vir04", "", "ascend310p", "ascend310p3vir04"},
		{"310B4", "", "ascend310b", "ascend310b4"},
		{"310", "", "ascend310", "ascend310"},
		{"A310-50-C00", "", "", ""},
		{"910", "", "", ""},
		{"Mcu", "", "", ""},
		{"", "", "", ""},
	} {
		m, _ := r.Name(tt.name, tt.npu)
		if m.Family != tt.family || m.SoC != tt.soc {
			t.Errorf("%s %s: got %q %q, want %q %q", tt.name, tt.npu, m.Family, m.SoC, tt.family, tt.soc)
		}
	}
}

func TestGPUNames(t *testing.T) {
	t.Parallel()
	r := rules(t)
	for _, tt := range []struct {
		name string
		cut  bool
		soc  string
	}{
		{"NVIDIA L4", false, "sm_89"},
		{"NVIDIA L40S", false, "sm_89"},
		{"NVIDIA A10", false, "sm_86"},
		{"NVIDIA A10", true, ""},
		{"NVIDIA A10 ...", false, "sm_86"},
		{"NVIDIA A100-SXM4-80GB", false, "sm_80"},
		{"NVIDIA RTX 6000 Ada Generation", false, "sm_89"},
		{"NVIDIA RTX 4000 SFF Ada Generation", false, "sm_89"},
		{"Quadro RTX 6000", false, "sm_75"},
		{"NVIDIA RTX PRO 6000 Blackwell Workstation Edition", false, "sm_120"},
		{"NVIDIA RTX A6000", false, "sm_86"},
		{"NVIDIA GeForce RTX 2050", false, "sm_86"},
		{"NVIDIA GeForce RTX 2080 ...", false, "sm_75"},
		{"NVIDIA GeForce RTX 5090 D", false, "sm_120"},
		{"NVIDIA GeForce RTX", true, ""},
		{"NVIDIA GH200 480GB", false, "sm_90"},
		{"NVIDIA GB300", false, "sm_103"},
		{"NVIDIA GB10", false, "sm_121"},
		{"NVIDIA B200", false, "sm_100"},
		{"Tesla V100-SXM2-32GB", false, "sm_70"},
		{"Tesla K80", false, "sm_37"},
		{"NVIDIA Graphics Device", false, ""},
		{"", true, ""},
	} {
		if m, _ := r.GPU(tt.name, tt.cut); m.SoC != tt.soc {
			t.Errorf("%q (cut %v): got %q, want %q", tt.name, tt.cut, m.SoC, tt.soc)
		}
	}
}

func TestPCI(t *testing.T) {
	t.Parallel()
	r := rules(t)
	for _, tt := range []struct {
		vendor, device, class string
		one                   bool
		family, soc           string
	}{
		{"19e5", "d802", "120000", true, "ascend910b", ""},
		{"19e5", "d803", "120000", true, "ascend910_93", ""},
		{"19e5", "d806", "1200", true, "ascend950", ""},
		{"19e5", "a222", "020000", false, "", ""},
		{"19e5", "1711", "030000", false, "", ""},
		{"19e5", "d8ff", "120000", true, "", ""},
		{"10de", "2330", "030200", true, "hopper", "sm_90"},
		{"10DE", "20B2", "0302", true, "ampere", "sm_80"},
		{"10de", "1af1", "068000", false, "", ""},
		{"10de", "2e12", "030200", true, "blackwell", "sm_121"},
		{"10de", "3182", "030200", true, "blackwell", "sm_103"},
		{"10de", "ffff", "030200", true, "", ""},
		{"1002", "74a1", "120000", false, "", ""},
	} {
		m, one := r.PCI(tt.vendor, tt.device, tt.class)
		if one != tt.one || m.Family != tt.family || m.SoC != tt.soc {
			t.Errorf("%s:%s %s: got %v %q %q, want %v %q %q", tt.vendor, tt.device, tt.class, one, m.Family, m.SoC, tt.one, tt.family, tt.soc)
		}
	}
}

// What each judgement needs is something that the package works out, and no
// rule stands behind one that always holds.
func TestJudgementsEnd(t *testing.T) {
	t.Parallel()
	r := rules(t)
	for i, j := range r.Judgements() {
		if len(j.When) == 0 && i != len(r.Judgements())-1 {
			t.Errorf("%s always holds; the rules after it never do", j.Rule)
		}
	}
}
