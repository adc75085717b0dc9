package chip

import (
	"slices"
	"strconv"
	"strings"
)

// PCI says whether a PCI function is an accelerator of a known vendor and, by
// its device id, of which family. All three are hex without 0x; class has four
// or six digits and may be empty when it is not known. An accelerator with an
// id that nobody has listed is a Match without a family.
func (r *Rules) PCI(vendor, device, class string) (Match, bool) {
	vendor, device = strings.ToLower(vendor), strings.ToLower(device)
	if len(class) > 4 {
		class = class[:4]
	}
	switch vendor {
	case r.ascend.PCI.Vendor:
		m, known := r.ascend.id(device)
		isOne := slices.Contains(r.ascend.PCI.Classes, class)
		if known && (isOne || class == "") {
			return m, true
		}
		return Match{Rule: "pci-class", Vendor: Huawei}, isOne
	case r.nvidia.PCI.Vendor:
		if class != "" && !slices.Contains(r.nvidia.PCI.Classes, class) {
			return Match{}, false // sound, USB and NVSwitch functions
		}
		if m, known := r.block(device); known {
			return m, true
		}
		return Match{Rule: "pci-class", Vendor: NVIDIA}, class != ""
	}
	return Match{}, false
}

func (r *Rules) block(device string) (Match, bool) {
	id, err := strconv.ParseUint(device, 16, 16)
	if err != nil {
		return Match{}, false
	}
	for _, b := range r.nvidia.Blocks {
		if b.from <= id && id <= b.to {
			return r.sm("pci-id", b.SM)
		}
	}
	return Match{}, false
}

// VendorID is the PCI vendor id for a vendor name as lspci prints it, or "".
func (r *Rules) VendorID(name string) string {
	name = strings.ToLower(name)
	for _, p := range []pciRule{r.ascend.PCI, r.nvidia.PCI} {
		for _, n := range p.Names {
			if strings.Contains(name, n) {
				return p.Vendor
			}
		}
	}
	return ""
}
