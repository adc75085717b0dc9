package host

import "github.com/invar-ops/invar/internal/report"

// The states of a verdict.
const (
	Known    = "known"    // the chip's family is known and something can be built for it
	Refused  = "refused"  // the chip is known and nothing is built for it
	Unknown  = "unknown"  // nothing is concluded, with the reason
	Conflict = "conflict" // evidence against evidence: a person must choose
	NoDevice = "none"     // every source says that there is no accelerator
)

// A Verdict is what Judge concluded from Facts.
type Verdict struct {
	State      string   `json:"state"`
	SoC        string   `json:"soc,omitempty"`    // "ascend910b4", "sm_90"; empty when only the family is known
	SKU        string   `json:"sku,omitempty"`    // the chip as its tool calls it
	Family     string   `json:"family,omitempty"` // "ascend910b", "hopper"
	Title      string   `json:"title,omitempty"`  // what people call the family: "A2"
	Target     string   `json:"target,omitempty"` // folder of targets/; "cpu" only when there is no accelerator or --soc says so
	Vendor     string   `json:"vendor,omitempty"`
	Count      int      `json:"count"`                // cards
	Chips      int      `json:"chips,omitempty"`      // chips on them, where a card has several
	AtLeast    bool     `json:"at_least,omitempty"`   // the evidence is cut: there may be more
	SoCs       []string `json:"socs,omitempty"`       // all that were named, in a conflict
	Assumed    string   `json:"assumed,omitempty"`    // the SoC others take for this name; not used by invar
	Rule       string   `json:"rule"`                 // of judgement.yaml
	ChipRule   string   `json:"chip_rule,omitempty"`  // that named the chip
	Decided    string   `json:"decided_by,omitempty"` // the source that named it
	Agrees     []string `json:"agrees,omitempty"`
	Disagrees  []string `json:"disagrees,omitempty"`
	Unknown    []string `json:"unknown,omitempty"` // what stays unknown, with what would tell
	Reason     string   `json:"reason"`
	Hint       string   `json:"hint,omitempty"`
	Driver     string   `json:"driver,omitempty"`
	Firmware   string   `json:"firmware,omitempty"`
	CUDA       string   `json:"cuda,omitempty"`      // the most that the driver supports
	HostArch   string   `json:"host_arch,omitempty"` // CPU architecture that belongs to the chip
	Health     Health   `json:"health"`
	Devices    []Device `json:"devices,omitempty"`
	Weighed    []Weight `json:"weighed,omitempty"`
	Recognised []string `json:"recognised,omitempty"` // tools whose output was in a pasted text
}

// A Weight is what one source counted for.
type Weight struct {
	Source string `json:"source"`
	Asked  string `json:"asked"`
	Said   string `json:"said"`
	Role   string `json:"role"` // "decides", "agrees", "disagrees", or a few words
}

// Health is the state of the devices as their tools reported it. It does not
// change the verdict: a busy or a broken device can be built for.
type Health struct {
	Usable bool     `json:"usable"` // a device was seen and nothing says that programs cannot use it
	InUse  int      `json:"in_use,omitempty"`
	Faulty int      `json:"faulty,omitempty"`
	Notes  []string `json:"notes,omitempty"`
	Faults []Fault  `json:"faults,omitempty"`
}

// ExitCode is 0 for a verdict, 3 for a chip that is known and refused, and 6
// when nothing can be concluded or the evidence is in conflict.
func (v Verdict) ExitCode() int {
	switch v.State {
	case Known, NoDevice:
		return report.Done
	case Refused:
		return report.Unmet
	}
	return report.Inconclusive
}

// Err is nil when there is a verdict to build on; otherwise it says why not and what to do.
func (v Verdict) Err() error {
	code := v.ExitCode()
	if code == report.Done {
		return nil
	}
	return report.Problemf(code, "%s: %s", v.State, v.Reason).WithHint("%s", v.Hint)
}
