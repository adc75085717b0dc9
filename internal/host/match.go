package host

import (
	"strings"

	"github.com/invar-ops/invar/internal/host/chip"
)

// matchDevice says what chip a device is, by the best that its source told:
// compute capability, then name, then PCI id.
func matchDevice(rules *chip.Rules, vendor string, d Device) (chip.Match, bool) {
	if vendor == chip.NVIDIA {
		return matchGPU(rules, d)
	}
	if d.Name != "" {
		if m, ok := rules.Name(d.Name, d.NPUName); ok {
			return m, true
		}
		if m, ok := rules.Name(d.Name, ""); ok && d.NPUName != "" {
			m.Note = "NPU Name " + d.NPUName + " is not one that a rule knows"
			m.SoC = ""
			return m, true
		}
		if d.PCI == "" {
			return chip.Match{}, false
		}
	}
	return matchPCI(rules, d)
}

func matchGPU(rules *chip.Rules, d Device) (chip.Match, bool) {
	if m, ok := rules.SM(d.ComputeCap); ok {
		return m, true
	}
	if m, ok := matchPCI(rules, d); ok {
		return m, true
	}
	if d.Name == "" {
		return chip.Match{}, false
	}
	if d.PCI != "" {
		return rules.Codename(d.Name)
	}
	return rules.GPU(d.Name, d.NameCut)
}

func matchPCI(rules *chip.Rules, d Device) (chip.Match, bool) {
	vendor, device, ok := strings.Cut(d.PCI, ":")
	if !ok {
		return chip.Match{}, false
	}
	m, ok := rules.PCI(vendor, device, d.Class)
	return m, ok && m.Family != ""
}
