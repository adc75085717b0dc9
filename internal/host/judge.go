package host

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/invar-ops/invar/internal/host/chip"
)

// Judge concludes which chip f is about. It is pure: the same facts give the
// same verdict on every machine. What no source named stays unknown.
func Judge(f Facts) Verdict {
	rules, err := chip.Load()
	if err != nil {
		return Verdict{State: Unknown, Rule: "no-rules", Reason: err.Error()}
	}
	d := newDocket(rules, f)
	j := rules.Judge(d.conditions())
	v := Verdict{State: j.State, Rule: j.Rule, Vendor: d.vendor, Recognised: f.Recognised}
	d.chip(&v)
	d.software(&v)
	v.Devices = d.devices(v.Vendor)
	d.count(&v)
	d.weigh(&v)
	d.health(&v)
	d.open(&v)
	v.Reason = d.fill(j.Reason, v)
	if v.State != Known && v.State != NoDevice || j.Rule == "option" {
		v.Hint = d.fill(j.Hint, v)
	}
	return v
}

// chip fills in what the verdict is about.
func (d *docket) chip(v *Verdict) {
	m := d.best.match
	v.Decided = d.best.source
	v.SKU = d.best.device.Name
	switch {
	case v.Rule == "option" || v.Rule == "option-refused":
		d.chosen(v)
		if v.Target == "cpu" {
			return
		}
		m = *d.option
	case v.Rule == "soc-version" || v.Rule == "soc-version-refused":
		m, v.Decided, v.SKU = *d.env, "SOC_VERSION", ""
	case v.State == NoDevice:
		v.SoC, v.Family, v.Target, v.SKU = d.facts.CPU.Arch, "cpu", "cpu", d.facts.CPU.Model
		return
	case v.State == Conflict:
		v.SoCs = d.labels()
		if v.Rule == "soc-version-contradicts-device" {
			v.SoCs = append(v.SoCs, cmp.Or(d.env.SoC, d.env.Family))
		}
		v.Decided, v.SKU = "", ""
		return
	case v.State == Unknown:
		v.Decided, v.SKU = "", strings.Join(d.unknownNames(), ", ")
		return
	}
	fam, _ := d.rules.Family(m.Family)
	v.SoC, v.Family, v.Title, v.Vendor = m.SoC, m.Family, fam.Title, m.Vendor
	v.ChipRule, v.Assumed = m.Rule, m.Assumed
	if v.State == Known {
		v.Target = fam.Target
	}
	v.HostArch = ""
	if v.Vendor == chip.NVIDIA {
		v.HostArch = d.rules.HostArch(v.SKU)
	}
}

// chosen takes what --soc says. The device keeps its name where it is one of that kind.
func (d *docket) chosen(v *Verdict) {
	v.Decided = "--soc"
	if e := d.facts.find("--soc"); e != nil && isCPU(e.Answer) {
		v.SoC, v.Family, v.Target, v.SKU, v.Vendor = d.facts.CPU.Arch, "cpu", "cpu", d.facts.CPU.Model, ""
		return
	}
	if d.best.match.Family != d.option.Family {
		v.SKU = ""
	}
	if d.option.SoC == "" && d.best.match.Family == d.option.Family {
		d.option.SoC = d.best.match.SoC // --soc ascend910b on a 910B4: the device knows more
	}
}

// software fills in versions of the vendor's driver.
func (d *docket) software(v *Verdict) {
	vendor := v.Vendor
	if vendor == "" && d.facts.Pasted {
		// A text without devices may still name a driver: say it.
		if d.facts.NVIDIA.Driver != "" {
			vendor = chip.NVIDIA
		} else if d.facts.Ascend.Driver != "" {
			vendor = chip.Huawei
		}
	}
	switch vendor {
	case chip.Huawei:
		v.Driver, v.Firmware = d.facts.Ascend.Driver, d.facts.Ascend.Firmware
	case chip.NVIDIA:
		v.Driver, v.CUDA = d.facts.NVIDIA.Driver, d.facts.NVIDIA.CUDA
	}
}

// labels names each chip of the base evidence with its count by the best source.
func (d *docket) labels() []string {
	var out []string
	for _, c := range d.base {
		name := c.match.SoC
		if name == "" {
			name = c.match.Family
			if slices.ContainsFunc(d.base, func(o claim) bool { return o.match.Family == name && o.match.SoC != "" }) {
				continue // another source names the SKU of this family
			}
		}
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	for _, n := range d.unknownNames() {
		if len(out) > 0 && !slices.Contains(out, n) && slices.ContainsFunc(d.base, func(c claim) bool { return c.known }) {
			out = append(out, n)
		}
	}
	return out
}

// fill puts facts into the text of a rule.
func (d *docket) fill(text string, v Verdict) string {
	fault := Fault{}
	if x := d.blocking(); x != nil {
		fault = *x
	}
	env, opt := "", ""
	if e := d.facts.find("SOC_VERSION"); e != nil {
		env = e.Answer
	}
	if e := d.facts.find("--soc"); e != nil {
		opt = e.Answer
	}
	envChip := ""
	if d.env != nil {
		envChip = describe(d.rules, *d.env)
	}
	refused := d.best.match
	if d.option != nil && strings.HasPrefix(v.Rule, "option") {
		refused = *d.option
	} else if strings.HasPrefix(v.Rule, "soc-version") && d.env != nil && v.State == Refused {
		refused = *d.env
	}
	return strings.NewReplacer(
		"{option}", opt, "{env}", env, "{envchip}", envChip, "{chip}", describe(d.rules, d.best.match),
		"{refusal}", d.refusal(refused), "{decider}", d.best.source, "{socs}", d.perSource(), "{names}", strings.Join(d.unknownNames(), ", "),
		"{fault}", fault.Meaning, "{faulthint}", fault.Hint, "{unclear}", d.unclearText(), "{expected}", d.expected(),
		"{tools}", strings.Join(d.facts.Recognised, ", "), "{ask}", d.ask(v), "{known}", strings.Join(d.rules.Known(), ", "),
		"{choices}", d.choices(v),
	).Replace(text)
}

// perSource says what each source of the base named: "sm_86 (Ampere) x 2, sm_61 (Pascal) x 3 by nvidia-smi -L".
func (d *docket) perSource() string {
	var out []string
	for _, s := range names(d.base, func(c claim) string { return c.source }) {
		var own []claim
		for _, c := range d.base {
			if c.source == s {
				own = append(own, c)
			}
		}
		var parts []string
		for _, n := range names(own, func(c claim) string { return describe(d.rules, c.match) }) {
			count := 0
			for _, c := range own {
				if describe(d.rules, c.match) == n {
					count++
				}
			}
			parts = append(parts, fmt.Sprintf("%s x %d", n, count))
		}
		out = append(out, strings.Join(parts, ", ")+" by "+s)
	}
	return strings.Join(out, "; ")
}

// ask says what would tell the chip.
func (d *docket) ask(v Verdict) string {
	vendor := v.Vendor
	if vendor == "" {
		for _, e := range d.facts.Evidence {
			if e.Reading != nil && e.Reading.Vendor != "" {
				vendor = e.Reading.Vendor
			}
		}
	}
	id := "ID"
	for _, c := range d.claims {
		if c.device.ID != "" {
			id = c.device.ID
			break
		}
	}
	return strings.ReplaceAll(d.rules.Ask(vendor), "{id}", id)
}

// choices are the ways to decide by hand, from what was found.
func (d *docket) choices(v Verdict) string {
	var keep, drop []string
	for _, c := range d.base {
		name := c.match.SoC
		if name == "" {
			name = c.match.Family
		}
		list := &keep
		if d.refusal(c.match) != "" {
			list = &drop
		}
		if !slices.Contains(*list, name) {
			*list = append(*list, name)
		}
	}
	switch {
	case v.State == Refused && len(keep) == 0:
		return "build for the CPU instead (--soc cpu), or for another machine (--soc with one of: " + strings.Join(d.rules.Known(), ", ") + ")"
	case len(drop) > 0 && len(keep) == 1 && d.vendor == chip.NVIDIA:
		return fmt.Sprintf("--soc %s, and hide %s from programs: CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=%s",
			keep[0], strings.Join(drop, ", "), strings.Join(d.ids(keep[0]), ","))
	case len(keep) > 0:
		return "--soc with one of: " + strings.Join(keep, ", ")
	}
	return "--soc with one of: " + strings.Join(d.rules.Known(), ", ")
}

// ids are the numbers of the devices of one SoC, by the source that has them.
func (d *docket) ids(soc string) []string {
	var own []claim
	for _, c := range d.base {
		if c.match.SoC == soc {
			own = append(own, c)
		}
	}
	return names(own, func(c claim) string { return c.device.ID })
}
