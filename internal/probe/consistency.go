package probe

import (
	_ "embed"
	"fmt"
	"strings"

	"github.com/invar-ops/invar/internal/data"
	"github.com/invar-ops/invar/internal/version"
)

//go:embed consistency.yaml
var consistencyYAML []byte

// A consistencyLevel is what is known of CANN's own.
type consistencyLevel struct {
	CANN     string   `yaml:"cann"`      // range of versions that have it
	TorchNPU string   `yaml:"torch_npu"` // release that can ask for it
	Level    int      `yaml:"level"`
	Call     string   `yaml:"call"`   // of torch_npu
	Option   string   `yaml:"option"` // of aclrtSetSysParamOpt
	Limits   []string `yaml:"limits"`
	Source   string   `yaml:"source"`
}

// cannVersion is that of CANN in the probed environment, else that of the build.
func (p *prober) cannVersion() string { return firstNonEmpty(p.cann, p.receipt.Release.CANNVersion) }

// consistency notes whether CANN's own level could serve in the place of these
// operators. It is no proof either way: levels 6 and 7 ask the operators.
func (p *prober) consistency() {
	var c consistencyLevel
	if err := data.Decode("probe/consistency.yaml", consistencyYAML, &c); err != nil {
		p.extra = append(p.extra, Observation{"CANN's own consistency level", err.Error()})
		return
	}
	p.extra = append(p.extra, Observation{"CANN's own consistency level", c.text(p.cannVersion(), p.facts.NPU.TorchNPU, p.facts.NPU.LevelKnob)})
}

func (c consistencyLevel) text(cann, torchNPU string, knob bool) string {
	v, err := version.Parse(version.CANN, cann)
	switch {
	case err != nil || cann == "":
		return "the version of CANN is not known; from " + strings.TrimPrefix(c.CANN, ">= ") + " on it has one"
	case !version.Within(version.CANN, c.CANN, v.String()):
		return fmt.Sprintf("CANN %s has none (%s has): it cannot serve instead of these operators", cann, c.CANN)
	}
	text := fmt.Sprintf("CANN %s has one: ", cann)
	if knob {
		text += fmt.Sprintf("%s(%d) asks for it", c.Call, c.Level)
	} else {
		text += fmt.Sprintf("aclrtSetSysParamOpt(%s, %d) asks for it; torch_npu %s has no call of its own (that of release %s has)", c.Option, c.Level, firstNonEmpty(torchNPU, "here"), c.TorchNPU)
	}
	return text + "; it could serve instead, but " + strings.Join(c.Limits, ", ") + ": prove it before you rely on it"
}
