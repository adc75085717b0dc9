package host

import (
	"fmt"
	"slices"
	"strings"

	"github.com/invar-ops/invar/internal/host/chip"
)

// weigh says for each source whether it decides, agrees or disagrees.
func (d *docket) weigh(v *Verdict) {
	decided := false
	for i, e := range d.facts.Evidence {
		w := Weight{Source: e.Source, Asked: e.Asked, Said: said(e), Role: e.Reason}
		switch agree, known := d.agrees(i, e, *v); {
		case known && !decided && e.Source == v.Decided && v.Decided != "" && (v.SoC == "" || d.names(i, v.SoC) || isValue(e)):
			decided = true
			w.Role = "decides"
			if v.ChipRule != "" {
				w.Role = "decides (rule " + v.ChipRule + ")"
			}
		case known && v.State == Conflict:
			w.Role = "in conflict"
		case known && agree:
			w.Role = "agrees"
			v.Agrees = append(v.Agrees, e.Asked+": "+e.Understood)
		case known:
			w.Role = "disagrees"
			v.Disagrees = append(v.Disagrees, e.Asked+": "+e.Understood)
		case e.Absent && w.Role == "unset", e.Absent:
			w.Said, w.Role = e.Reason, ""
		}
		v.Weighed = append(v.Weighed, w)
	}
}

func isValue(e Evidence) bool { return e.Source == "--soc" || e.Source == "SOC_VERSION" }

// said is the evidence in few words: what was understood, else its first line.
func said(e Evidence) string {
	if e.Understood != "" {
		return e.Understood
	}
	for l := range strings.SplitSeq(e.Answer, "\n") {
		if l = strings.TrimSpace(l); l != "" {
			if len(l) > 60 {
				l = strings.ToValidUTF8(l[:60], "") + "…"
			}
			return l
		}
	}
	return "nothing"
}

// names reports whether evidence i names soc.
func (d *docket) names(i int, soc string) bool {
	return slices.ContainsFunc(d.claims, func(c claim) bool { return c.index == i && c.match.SoC == soc })
}

// agrees compares one source with the verdict. known is false for a source
// that names no chip.
func (d *docket) agrees(i int, e Evidence, v Verdict) (agree, known bool) {
	var own []chip.Match
	switch {
	case isValue(e) && isCPU(e.Answer):
		return v.Target == "cpu", true
	case isValue(e) && e.Understood != "":
		m, _, _ := d.rules.Value(e.Answer)
		own = []chip.Match{m}
	case e.Says == Present && e.Reading == nil && v.Family != "":
		return v.Target != "cpu", true
	}
	for _, c := range d.claims {
		if c.index == i && c.known {
			own = append(own, c.match)
		}
	}
	if len(own) == 0 {
		return false, false
	}
	for _, m := range own {
		if m.Family != v.Family || m.SoC != "" && v.SoC != "" && m.SoC != v.SoC {
			return false, true
		}
	}
	return true, true
}

// devices are those of the source that knows most: its ids, memory and state.
func (d *docket) devices(vendor string) []Device {
	bySource := map[int][]Device{}
	best, score := -1, 0
	for _, c := range d.claims {
		if vendor != "" && c.match.Vendor != vendor {
			continue
		}
		bySource[c.index] = append(bySource[c.index], c.device)
	}
	for i, e := range d.facts.Evidence {
		devs := bySource[i]
		if len(devs) == 0 {
			continue
		}
		// The number of devices first; then memory, which only tables and queries tell.
		s := len(devs)*4 + 1
		if devs[0].MemoryMiB > 0 {
			s += 2
		}
		if e.Source != "sysfs pci" && e.Source != "lspci" {
			s++
		}
		if s > score {
			best, score = i, s
		}
	}
	if best < 0 {
		return nil
	}
	return mergeDevices(bySource[best], bySource)
}

// mergeDevices fills in what other sources know of the same device, found by
// bus address or by number and chip.
func mergeDevices(devs []Device, bySource map[int][]Device) []Device {
	out := slices.Clone(devs)
	order := make([]int, 0, len(bySource))
	for i := range bySource {
		order = append(order, i)
	}
	slices.Sort(order)
	for i := range out {
		for _, k := range order {
			for _, o := range bySource[k] {
				if same(out[i], o) {
					out[i] = merge(out[i], o)
				}
			}
		}
	}
	return out
}

func same(a, b Device) bool {
	if a.Bus != "" && b.Bus != "" && a.PCI == "" && b.PCI == "" {
		return busTail(a.Bus) == busTail(b.Bus) && a.Chip == b.Chip
	}
	return a.ID != "" && a.ID == b.ID && (a.Chip == b.Chip || a.Chip == "" || b.Chip == "")
}

// busTail is a bus address without the domain, which tools print with four or eight digits or not at all.
func busTail(bus string) string {
	if strings.Count(bus, ":") < 2 {
		return bus
	}
	return strings.TrimLeft(bus, "0")
}

func merge(a, b Device) Device {
	fill := func(to *string, from string) {
		if *to == "" {
			*to = from
		}
	}
	fill(&a.Name, b.Name)
	if a.NameCut && b.Name != "" && !b.NameCut {
		a.Name, a.NameCut = b.Name, false
	}
	fill(&a.NPUName, b.NPUName)
	fill(&a.Phy, b.Phy)
	fill(&a.Logic, b.Logic)
	fill(&a.Bus, b.Bus)
	fill(&a.PCI, b.PCI)
	fill(&a.UUID, b.UUID)
	fill(&a.ComputeCap, b.ComputeCap)
	fill(&a.Health, b.Health)
	fill(&a.Product, b.Product)
	fill(&a.Busy, b.Busy)
	if a.MemoryMiB == 0 {
		a.MemoryMiB, a.UsedMiB = b.MemoryMiB, b.UsedMiB
	}
	a.MIGMode = a.MIGMode || b.MIGMode
	if len(a.MIG) == 0 {
		a.MIG = b.MIG
	}
	a.Processes = max(a.Processes, b.Processes)
	return a
}

// count takes the number of cards from the source that is whole and says most.
func (d *docket) count(v *Verdict) {
	cut := true
	for i, e := range d.facts.Evidence {
		if e.Reading == nil || v.Vendor != "" && e.Reading.Vendor != "" && e.Reading.Vendor != v.Vendor {
			continue
		}
		cards, chips := d.cards(i)
		total := e.Reading.Total
		whole := !e.Reading.Cut && !strings.HasPrefix(e.Source, "npu-smi info -t") || total > 0
		cards = max(cards, total)
		switch {
		case cards == 0:
		case whole && (cut || cards > v.Count), !whole && cut && cards > v.Count:
			v.Count, cut = cards, !whole
		}
		v.Chips = max(v.Chips, chips)
	}
	v.AtLeast = v.Count > 0 && cut
	if v.Chips <= v.Count {
		v.Chips = 0
	}
	if v.Count == 0 && v.Target != "cpu" {
		v.Count = d.nodes(v.Vendor)
	}
}

// cards counts the devices of evidence i: by number where it has one, since a
// card may hold several chips and appear once for each.
func (d *docket) cards(i int) (cards, chips int) {
	ids, all := map[string]bool{}, map[string]bool{}
	unnamed := 0
	for _, c := range d.claims {
		if c.index != i {
			continue
		}
		if c.device.ID == "" {
			unnamed++
			continue
		}
		ids[c.device.ID] = true
		all[fmt.Sprint(c.device.ID, "/", c.device.Chip)] = true
	}
	return len(ids) + unnamed, len(all) + unnamed
}

func (d *docket) nodes(vendor string) int {
	e := d.facts.find("/dev")
	if e == nil {
		return 0
	}
	n := parseDev(e.Answer)
	switch vendor {
	case chip.Huawei:
		return len(n.davinci)
	case chip.NVIDIA:
		return len(n.nvidia)
	}
	return 0
}
