package host

import (
	"fmt"
	"slices"
	"strings"

	"github.com/invar-ops/invar/internal/host/chip"
)

// health says what the tools report about the devices' state.
func (d *docket) health(v *Verdict) {
	h := &v.Health
	h.Faults = d.faults()
	for _, x := range h.Faults {
		h.note(x.Meaning + " (rule " + x.Rule + ")")
	}
	for _, dev := range v.Devices {
		if inUse(dev) {
			h.InUse++
		}
		if faulty(dev.Health) {
			h.Faulty++
			h.note(fmt.Sprintf("device %s: %s", dev.ID, dev.Health))
		}
		if len(dev.MIG) > 0 {
			h.note(migNote(dev))
		}
	}
	d.driverNotes(h)
	d.platformNotes(h, v)
	for _, e := range d.facts.Evidence {
		if e.Reading != nil {
			for _, n := range e.Reading.Notes {
				h.note(n)
			}
		}
	}
	// A tool that cannot be asked is no proof against a device that another shows.
	blocked := slices.ContainsFunc(h.Faults, func(x Fault) bool { return x.Says == "present" })
	h.Usable = v.Vendor != "" && len(d.claims) > 0 && !blocked && d.reached(v.Vendor) && h.Faulty < max(1, len(v.Devices))
}

func (h *Health) note(text string) {
	if text != "" && !slices.Contains(h.Notes, text) {
		h.Notes = append(h.Notes, text)
	}
}

// reached reports whether the vendor's tool itself saw a device; on the bus
// alone it may have no driver.
func (d *docket) reached(vendor string) bool {
	return slices.ContainsFunc(d.claims, func(c claim) bool {
		return c.match.Vendor == vendor && c.source != "sysfs pci" && c.source != "lspci"
	})
}

// inUse reads the tool's own signs. Memory counts only when most of it is
// taken: drivers reserve some.
func inUse(d Device) bool {
	return d.Processes > 0 || number(d.Busy) > 0 || d.MemoryMiB > 0 && d.UsedMiB*2 > d.MemoryMiB
}

// faulty is true for every health word but those for well and for not said.
func faulty(health string) bool {
	return health != "" && !strings.EqualFold(health, "OK") && given(health) != ""
}

func migNote(dev Device) string {
	var parts []string
	for _, m := range dev.MIG {
		switch {
		case m.MemoryMiB > 0:
			parts = append(parts, fmt.Sprintf("%d MiB", m.MemoryMiB))
		case m.Profile != "":
			parts = append(parts, m.Profile)
		}
	}
	return fmt.Sprintf("GPU %s is split into %d MIG devices (%s): a program sees one of them, and tensor parallel over them is not possible", dev.ID, len(dev.MIG), strings.Join(parts, ", "))
}

// driverNotes compares the running driver with the installed one.
func (d *docket) driverNotes(h *Health) {
	a := d.facts.Ascend
	if a.Installed != "" && a.Driver != "" && a.Installed != a.Driver {
		h.note(fmt.Sprintf("reboot pending: Ascend driver %s is installed and %s runs", a.Installed, a.Driver))
	}
	for _, e := range d.facts.Evidence {
		if r := e.Reading; r != nil && r.Vendor == chip.Huawei && r.Version != "" && r.Driver != "" && r.Version != r.Driver {
			h.note(fmt.Sprintf("npu-smi itself is %s; the driver is %s, and that counts", r.Version, r.Driver))
		}
	}
	if e := d.facts.find("/proc/driver/nvidia"); e != nil && e.Reading != nil {
		for _, o := range d.facts.Evidence {
			if o.Reading != nil && o.Source != e.Source && o.Reading.Vendor == chip.NVIDIA && o.Reading.Driver != "" && o.Reading.Driver != e.Reading.Driver {
				h.note(fmt.Sprintf("reboot pending: the nvidia module is %s and the driver %s", e.Reading.Driver, o.Reading.Driver))
			}
		}
	}
}

// platformNotes are what the platform means for building and running.
func (d *docket) platformNotes(h *Health, v *Verdict) {
	n := d.facts.NVIDIA
	if v.Vendor == chip.NVIDIA || n.Tegra {
		if n.Tegra || slices.ContainsFunc(v.Devices, func(d Device) bool { return strings.Contains(d.Name, "nvgpu") }) {
			h.note("Jetson (Tegra): wheels for servers do not fit, JetPack's do")
		}
		if n.WDDM {
			h.note("the answer is from Windows (WDDM): build in WSL or on Linux")
		}
		if v.HostArch != "" {
			h.note("the host CPU of this board is " + v.HostArch + ": wheels of that architecture are needed")
		}
	}
	if n.WSL {
		h.note("WSL: the driver belongs on the Windows side")
	}
	for _, c := range d.claims {
		if c.source != "sysfs pci" && c.source != "lspci" {
			continue
		}
		switch b := c.device.Bound; {
		case b != "" && !d.rules.OwnDriver(c.match.Vendor, b):
			h.note(fmt.Sprintf("%s is bound to %s, not to its vendor's driver", c.device.Bus, b))
		case b == "" && c.source == "sysfs pci":
			h.note(c.device.Bus + " is bound to no kernel driver")
		}
	}
	if d.onBus(v.Vendor) > v.Count && v.Count > 0 && d.reached(v.Vendor) && !v.AtLeast {
		h.note(fmt.Sprintf("%d cards are on the PCI bus, the tool shows %d", d.onBus(v.Vendor), v.Count))
	}
}

func (d *docket) onBus(vendor string) int {
	n := 0
	for _, c := range d.claims {
		if c.source == "sysfs pci" && c.match.Vendor == vendor {
			n++
		}
	}
	return n
}

// open lists what stays unknown although there is a verdict.
func (d *docket) open(v *Verdict) {
	add := func(format string, args ...any) { v.Unknown = append(v.Unknown, fmt.Sprintf(format, args...)) }
	device := v.Vendor != "" && v.State != Conflict
	switch {
	case v.State == Known && device && v.SoC == "":
		how := d.best.match.Ask
		if how == "" {
			how = d.ask(*v)
		}
		id := "ID"
		if len(v.Devices) > 0 && v.Devices[0].ID != "" {
			id = v.Devices[0].ID
		}
		add("the SKU: %s", strings.ReplaceAll(how, "{id}", id))
	case device && v.Vendor == chip.Huawei && v.State == Known && v.SoC != "" && !d.listed(v.SoC):
		add("whether %s was seen before: the family is by its pattern", v.SoC)
	}
	if v.Assumed != "" && v.SoC == "" {
		add("the SKU behind this name; vllm-ascend takes %s (--soc %s to take it too)", v.Assumed, v.Assumed)
	}
	if v.AtLeast {
		add("the number of devices: the text is cut or is about one of them")
	}
	for _, x := range v.Devices {
		if v.Vendor == chip.Huawei && strings.EqualFold(x.Health, "unknown") {
			add("the health of device %s: npu-smi does not know it", x.ID)
		}
		if x.Name == "" && x.PCI == "" && v.Decided != "" && v.SKU != "" {
			add("the chip of device %s: it is listed without a name", x.ID)
		}
	}
	if device && v.Driver == "" {
		add("the driver's version")
	}
	if v.Vendor == chip.NVIDIA && d.facts.Pasted && v.CUDA == "" && v.Driver != "" {
		add("the CUDA version of the driver")
	}
	if d.facts.Pasted && d.sized() && v.Devices[0].MemoryMiB == 0 {
		add("the memory")
	}
	for _, c := range d.claims {
		if c.match.Note != "" && c.match.Family == v.Family {
			v.Health.note(c.match.Note)
		}
		if c.device.NameCut {
			v.Health.note("the name " + c.device.Name + " is cut; nvidia-smi -L shows it whole")
		}
	}
}

// sized reports whether the text is of a kind that tells the memory.
func (d *docket) sized() bool {
	return slices.ContainsFunc(d.claims, func(c claim) bool {
		return slices.Contains([]string{"npu-smi info", "nvidia-smi", "nvidia-smi --query-gpu"}, c.source)
	})
}

func (d *docket) listed(soc string) bool {
	return slices.ContainsFunc(d.claims, func(c claim) bool { return c.match.SoC == soc && c.match.Listed }) ||
		d.option != nil && d.option.Listed || d.env != nil && d.env.Listed
}
