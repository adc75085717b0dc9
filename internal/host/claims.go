package host

import (
	"slices"
	"strings"

	"github.com/invar-ops/invar/internal/host/chip"
)

// A claim is what one source said about one device.
type claim struct {
	index  int // of the evidence
	source string
	device Device
	match  chip.Match
	known  bool // a rule knows the device
}

// A docket is everything that Judge looks at, sorted out.
type docket struct {
	rules  *chip.Rules
	facts  Facts
	claims []claim
	base   []claim // those whose word counts most; mixed cards are looked for here
	option *chip.Match
	env    *chip.Match
	vendor string // of the devices, when there is one vendor
	best   claim  // that decides
}

func newDocket(rules *chip.Rules, f Facts) *docket {
	d := &docket{rules: rules, facts: f}
	for i, e := range f.Evidence {
		if e.Source == "--soc" && e.Understood != "" {
			m, _, _ := rules.Value(e.Answer)
			d.option = &m
		}
		if e.Source == "SOC_VERSION" && e.Understood != "" {
			m, _, _ := rules.Value(e.Answer)
			d.env = &m
		}
		if e.Reading == nil {
			continue
		}
		for _, dev := range e.Reading.Devices {
			m, ok := matchDevice(rules, vendorOfDevice(e.Reading.Vendor, dev), dev)
			if m.Vendor == "" {
				m.Vendor = vendorOfDevice(e.Reading.Vendor, dev)
			}
			d.claims = append(d.claims, claim{i, e.Source, dev, m, ok})
		}
	}
	d.claims = visible(d.claims, f)
	d.base = d.strongest()
	d.vendor, d.best = d.choose()
	return d
}

// vendorOfDevice is the reading's vendor, or by PCI id where it holds both.
func vendorOfDevice(vendor string, dev Device) string {
	switch {
	case vendor != "":
		return vendor
	case strings.HasPrefix(dev.PCI, "19e5:"):
		return chip.Huawei
	}
	return chip.NVIDIA
}

// strength is how much a claim counts against others of its vendor. An Ascend
// name and its PCI id are equals: they must agree. A GPU's own compute
// capability beats a table of names, and what the driver sees beats what only
// the bus sees, which may be a display card.
func (c claim) strength() int {
	switch {
	case !c.known || c.match.Weak:
		return 0
	case c.match.Vendor == chip.Huawei:
		return 3
	case c.match.Rule == "compute-capability":
		return 3
	case c.source != "sysfs pci" && c.source != "lspci":
		return 2
	}
	return 1
}

// strongest keeps the known claims of the greatest strength for each vendor.
func (d *docket) strongest() []claim {
	top := map[string]int{}
	for _, c := range d.claims {
		top[c.match.Vendor] = max(top[c.match.Vendor], c.strength())
	}
	var out []claim
	for _, c := range d.claims {
		if c.known && c.strength() == top[c.match.Vendor] {
			out = append(out, c)
		}
	}
	return out
}

// choose picks the claim that decides: by the rank of its source, one that
// names the SoC before one that names the family only.
func (d *docket) choose() (vendor string, best claim) {
	vendors := map[string]bool{}
	found := false
	for _, c := range d.base {
		vendors[c.match.Vendor] = true
		if !found || d.better(c, best) {
			best, found = c, true
		}
	}
	if len(vendors) == 1 {
		vendor = best.match.Vendor
	}
	if !found {
		for _, c := range d.claims {
			vendor = c.match.Vendor
		}
	}
	return vendor, best
}

func (d *docket) better(a, b claim) bool {
	if (a.match.SoC != "") != (b.match.SoC != "") {
		return a.match.SoC != ""
	}
	return d.rules.Rank(a.source) < d.rules.Rank(b.source)
}

// names collects a property of claims, in order, each value once.
func names(claims []claim, of func(claim) string) []string {
	var out []string
	for _, c := range claims {
		if n := of(c); n != "" && !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out
}

func familyOf(c claim) string { return c.match.Family }
func socOf(c claim) string    { return c.match.SoC }

// mixed reports whether one source names several values: the cards differ. If
// several do only between sources, the sources disagree.
func (d *docket) mixed(of func(claim) string) (within, between bool) {
	for _, s := range names(d.base, func(c claim) string { return c.match.Vendor + " " + c.source }) {
		var own []claim
		for _, c := range d.base {
			if c.match.Vendor+" "+c.source == s {
				own = append(own, c)
			}
		}
		if len(names(own, of)) > 1 {
			within = true
		}
	}
	for _, vendor := range []string{chip.Huawei, chip.NVIDIA} {
		var own []claim
		for _, c := range d.base {
			if c.match.Vendor == vendor {
				own = append(own, c)
			}
		}
		if len(names(own, of)) > 1 {
			between = true
		}
	}
	return within, between && !within
}

// visible leaves out the GPUs that CUDA_VISIBLE_DEVICES hides, where it names
// devices in a way that this tool's order or ids can follow: UUIDs, or indices
// with CUDA_DEVICE_ORDER=PCI_BUS_ID. CUDA's own order is fastest first.
func visible(claims []claim, f Facts) []claim {
	vars := map[string]string{}
	for _, e := range f.Evidence {
		if e.Source == "visibility" {
			vars = pairs(e.Answer)
		}
	}
	list := strings.FieldsFunc(vars["CUDA_VISIBLE_DEVICES"], func(r rune) bool { return r == ',' || r == ' ' })
	byID := vars["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"
	var ids []string
	for _, v := range list {
		if strings.HasPrefix(v, "GPU-") || byID && isNumber(v) {
			ids = append(ids, v)
		}
	}
	if len(ids) == 0 {
		return claims
	}
	var out []claim
	for _, c := range claims {
		if c.match.Vendor != chip.NVIDIA || shown(c.device, ids) {
			out = append(out, c)
		}
	}
	if len(out) == 0 {
		return claims
	}
	return out
}

func shown(d Device, ids []string) bool {
	for _, id := range ids {
		// A source that knows neither number nor UUID cannot be filtered: it is left out of the choice.
		if d.ID == id || d.UUID != "" && strings.HasPrefix(id, "GPU-") && strings.HasPrefix(d.UUID, id) {
			return true
		}
	}
	return false
}
