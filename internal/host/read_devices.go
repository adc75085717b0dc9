package host

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/invar-ops/invar/internal/cann"
	"github.com/invar-ops/invar/internal/host/chip"
)

// readDev says which nodes there are. They prove a device that was passed to
// this system; on PCI it may exist without, and then the driver is missing.
func readDev(_ *chip.Rules, _ *Facts, e *Evidence) {
	if e.Reason != "" {
		e.Says = Unclear
		return
	}
	n := parseDev(e.Answer)
	var said []string
	add := func(count int, what string) {
		if count > 0 {
			said = append(said, fmt.Sprintf("%d %s", count, what))
		}
	}
	add(len(n.davinci), "NPUs")
	add(len(n.vdavinci), "virtual NPUs")
	add(len(n.nvidia), "GPUs")
	if n.dxg {
		said = append(said, "the GPU of Windows (WSL)")
	}
	e.Understood = strings.Join(said, ", ")
	switch {
	case len(n.notNodes) > 0:
		e.Says = Unclear
		e.Reason = strings.Join(n.notNodes, ", ") + " should be device nodes and are not"
	case len(said) > 0:
		e.Says = Present
	case len(n.ascendControl)+len(n.nvidiaControl) > 0:
		e.Says = Unclear
		e.Reason = "only control nodes: " + strings.Join(append(n.ascendControl, n.nvidiaControl...), ", ")
	default:
		e.Says, e.Understood = None, "none"
	}
}

func readPCI(rules *chip.Rules, _ *Facts, e *Evidence) {
	switch {
	case e.Absent && strings.HasPrefix(e.Reason, "no PCI bus"):
		e.Says = None // a virtual machine without PCI
		return
	case e.Reason != "":
		e.Says = Unclear
		return
	}
	found := parsePCI(rules, e.Answer)
	var said []string
	for _, vendor := range []string{chip.Huawei, chip.NVIDIA} {
		r := found[vendor]
		if r == nil {
			continue
		}
		said = append(said, r.Devices[0].PCI+", "+summary(rules, *r))
		if e.Reading == nil {
			e.Reading = r
			continue
		}
		// Cards of two vendors: one reading holds both, the ids tell them apart.
		e.Reading.Vendor = ""
		e.Reading.Devices = append(e.Reading.Devices, r.Devices...)
	}
	e.Says, e.Understood = Present, strings.Join(said, "; ")
	if len(said) == 0 {
		e.Says, e.Understood = None, "none of either vendor"
	}
}

func readProcNVIDIA(_ *chip.Rules, f *Facts, e *Evidence) {
	r, ok := parseProcNVIDIA(clean(e.Answer))
	if !ok {
		e.Says = None
		if !e.Absent && e.Reason == "" {
			e.Says, e.Reason = Unclear, "no version and no GPU in it"
		}
		return
	}
	f.NVIDIA.Module = true
	e.Reading, e.Understood = &r, versions(r)
	e.Says = Unclear // the driver is loaded: something made somebody load it
	if len(r.Devices) > 0 {
		e.Says = Present
	}
}

// tegraChip is the chip in the device tree: "nvidia,tegra234".
var tegraChip = regexp.MustCompile(`\btegra[0-9]+`)

func readTegra(rules *chip.Rules, f *Facts, e *Evidence) {
	if e.Absent {
		e.Says = None
		return
	}
	f.NVIDIA.Tegra = true
	e.Says, e.Understood = Present, "Jetson: the GPU is part of the chip"
	if name := tegraChip.FindString(e.Answer); name != "" {
		e.Reading = &Reading{Tool: e.Source, Vendor: chip.NVIDIA, Devices: []Device{{Name: name}}}
		e.Understood = "Jetson, " + summary(rules, *e.Reading)
	}
}

func readAscendVersion(_ *chip.Rules, f *Facts, e *Evidence) {
	v := driverVersion(clean(e.Answer))
	e.Understood = v
	if e.Source == "ascend driver" {
		f.Ascend.DriverDir = !e.Absent
		f.Ascend.Installed = v
		if v != "" {
			e.Understood = "driver " + v
		}
		if !e.Absent && v == "" && e.Reason == "" {
			e.Reason = "no package_version and no Version in it"
		}
		return
	}
	f.Ascend.Firmware = v
}

func readInstallInfo(_ *chip.Rules, _ *Facts, e *Evidence) {
	if e.Absent || e.Reason != "" {
		return
	}
	status := cann.ParseInfo([]byte(e.Answer))["driver_install_status"]
	e.Understood = "driver " + status
	if status != "complete" {
		e.Understood, e.Reason = "", "Driver_Install_Status is not complete"
	}
}

func readCANN(_ *chip.Rules, f *Facts, e *Evidence) {
	for _, c := range parseToolkit(clean(e.Answer)) {
		f.Ascend.CANN = append(f.Ascend.CANN, c)
		e.Understood = strings.TrimSpace("CANN " + c.Version + " " + c.Arch)
		if c.PreRelease {
			e.Understood += ", a pre-release build"
		}
	}
}

func readVisibility(_ *chip.Rules, _ *Facts, e *Evidence) {
	var said []string
	for _, l := range lines(e.Answer) {
		k, v, ok := strings.Cut(l, "=")
		switch {
		case !ok:
		case k == "CUDA_VISIBLE_DEVICES" && (v == "" || v == "-1"), k == "ASCEND_RT_VISIBLE_DEVICES" && v == "":
			said = append(said, k+" hides all devices from programs")
		case k == "NVIDIA_DRIVER_CAPABILITIES" && v != "all" && !strings.Contains(v, "utility"):
			said = append(said, k+" lacks utility: nvidia-smi is not passed")
		default:
			said = append(said, l)
		}
	}
	e.Understood = strings.Join(said, ", ")
}
