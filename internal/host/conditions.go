package host

import (
	"fmt"
	"slices"
	"strings"

	"github.com/invar-ops/invar/internal/host/chip"
)

// conditions are the facts by which judgement.yaml decides.
func (d *docket) conditions() map[string]bool {
	f := d.facts
	mixedFamilies, familiesDisagree := d.mixed(familyOf)
	mixedSoCs, socsDisagree := d.mixed(socOf)
	opt := f.find("--soc")
	env := f.find("SOC_VERSION")
	vendors := names(d.claims, func(c claim) string { return c.match.Vendor })
	c := map[string]bool{
		"option":                   opt != nil,
		"option-not-known":         opt != nil && opt.Understood == "",
		"option-refused":           d.option != nil && d.refusal(*d.option) != "",
		"two-vendors":              len(vendors) > 1,
		"mixed-families":           mixedFamilies,
		"mixed-socs":               mixedSoCs,
		"families-disagree":        familiesDisagree,
		"socs-disagree":            socsDisagree,
		"family":                   d.best.match.Family != "",
		"refused":                  d.refusal(d.best.match) != "",
		"soc-version":              env != nil && env.Understood != "",
		"soc-version-not-known":    env != nil && !env.Absent && env.Understood == "",
		"soc-version-other-family": d.env != nil && d.env.Family != d.best.match.Family,
		"soc-version-refused":      d.env != nil && d.refusal(*d.env) != "",
		"named":                    len(d.unknownNames()) > 0,
		"present":                  d.any(Present) || len(d.claims) > 0,
		"fault":                    d.blocking() != nil,
		"unclear":                  d.any(Unclear),
		"expected":                 d.expected() != "",
		"pasted":                   f.Pasted,
		"recognised":               len(f.Recognised) > 0,
	}
	c["every-source-says-none"] = !f.Pasted && !c["present"] && !c["unclear"] && !c["expected"] && !c["fault"] && d.asked()
	return c
}

func (f Facts) find(source string) *Evidence {
	for i := range f.Evidence {
		if f.Evidence[i].Source == source {
			return &f.Evidence[i]
		}
	}
	return nil
}

func (d *docket) refusal(m chip.Match) string {
	if m.Family == "" && m.SoC == "" {
		return ""
	}
	return d.rules.Refused(m.Family, m.SoC)
}

func (d *docket) any(p Presence) bool {
	return slices.ContainsFunc(d.facts.Evidence, func(e Evidence) bool { return e.Says == p })
}

// presenceSources must all have been asked before "there is none" is said.
var presenceSources = []string{"npu-smi info", "nvidia-smi", "/dev", "sysfs pci", "/proc/driver/nvidia", "tegra"}

func (d *docket) asked() bool {
	for _, s := range presenceSources {
		e := d.facts.find(s)
		if e == nil || e.Says != None {
			return false
		}
	}
	return true
}

// unknownNames are the chip names that no rule knows.
func (d *docket) unknownNames() []string {
	return names(d.claims, func(c claim) string {
		switch {
		case c.known:
			return ""
		case c.device.Name != "":
			return c.device.Name
		case c.device.PCI != "":
			return c.device.PCI
		}
		return ""
	})
}

// faults are all that the tools complained about, the worst first.
func (d *docket) faults() []Fault {
	var out []Fault
	for _, e := range d.facts.Evidence {
		if e.Reading == nil {
			continue
		}
		for _, x := range e.Reading.Faults {
			if !slices.ContainsFunc(out, func(y Fault) bool { return y.Rule == x.Rule }) {
				out = append(out, x)
			}
		}
	}
	worst := []string{"present", "unknown", "none", "warning"}
	slices.SortStableFunc(out, func(a, b Fault) int { return slices.Index(worst, a.Says) - slices.Index(worst, b.Says) })
	return out
}

// blocking is the fault that keeps the chip from being known.
func (d *docket) blocking() *Fault {
	for _, x := range d.faults() {
		if x.Says == "present" || x.Says == "unknown" || x.Says == "none" && d.facts.Pasted {
			return &x
		}
	}
	return nil
}

// expected says what on this machine expects a device although none is seen.
func (d *docket) expected() string {
	f := d.facts
	if f.Pasted {
		return ""
	}
	if len(f.Ascend.CANN) > 0 {
		return "CANN " + f.Ascend.CANN[0].Version + " is installed"
	}
	if f.Ascend.DriverDir {
		return "the Ascend driver " + f.Ascend.Installed + " is installed"
	}
	if e := f.find("visibility"); e != nil {
		vars := pairs(e.Answer)
		for _, k := range []string{"ASCEND_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES"} {
			if v := vars[k]; v != "" && v != "void" && v != "none" {
				return fmt.Sprintf("%s=%s asks for devices", k, v)
			}
		}
	}
	return ""
}

// unclearText names the sources that should have been able to tell.
func (d *docket) unclearText() string {
	var out []string
	for _, e := range d.facts.Evidence {
		if e.Says == Unclear {
			out = append(out, e.Source+": "+e.Reason)
		}
	}
	return strings.Join(out, "; ")
}
