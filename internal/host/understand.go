package host

import (
	"fmt"
	"strings"

	"github.com/invar-ops/invar/internal/host/chip"
)

// understand makes facts of evidence. It reads the answers only, so that what
// was recorded or pasted gives the same facts as the machine itself.
func understand(rules *chip.Rules, evidence []Evidence) Facts {
	f := Facts{Evidence: evidence}
	for i := range evidence {
		e := &evidence[i]
		e.Understood, e.Reading, e.Says = "", nil, Silent
		e.asked = e.Reason
		if read, ok := readers[e.Source]; ok {
			read(rules, &f, e)
		}
	}
	settle(&f)
	return f
}

// readers understand one kind of evidence each.
var readers = map[string]func(*chip.Rules, *Facts, *Evidence){
	"--soc":                 readValue,
	"SOC_VERSION":           readValue,
	"cpuinfo":               readCPU,
	"topology":              readTopology,
	"cgroup":                readLimits,
	"os-release":            readOSRelease,
	"libc":                  readLibc,
	"kernel":                readKernel,
	"container":             readContainer,
	"/dev":                  readDev,
	"sysfs pci":             readPCI,
	"/proc/driver/nvidia":   readProcNVIDIA,
	"tegra":                 readTegra,
	"ascend driver":         readAscendVersion,
	"ascend firmware":       readAscendVersion,
	"ascend_install.info":   readInstallInfo,
	"cann":                  readCANN,
	"visibility":            readVisibility,
	"npu-smi info":          readTool,
	"npu-smi info -l":       readTool,
	"npu-smi info -m":       readTool,
	"npu-smi info -t board": readTool,
	"nvidia-smi":            readTool,
	"nvidia-smi -L":         readTool,
	"nvidia-smi -q":         readTool,
	"nvidia-smi --version":  readTool,
	"nvidia-smi --query-gpu": func(rules *chip.Rules, f *Facts, e *Evidence) {
		var asked []string
		if m := queryOption.FindStringSubmatch(e.Asked); m != nil {
			asked = strings.Split(m[1], ",")
		}
		r, ok := parseGPUQuery(clean(e.Answer), asked)
		takeReading(rules, f, e, r, ok)
	},
}

func readValue(rules *chip.Rules, f *Facts, e *Evidence) {
	if e.Absent {
		return
	}
	if e.Source == "SOC_VERSION" {
		f.Ascend.SoCEnv = e.Answer
	}
	if isCPU(e.Answer) {
		e.Understood = "cpu"
		return
	}
	m, ok, note := rules.Value(e.Answer)
	switch {
	case ok:
		e.Understood = describe(rules, m)
	case note != "":
		e.Reason = note
	default:
		e.Reason = "no rule knows this value"
	}
}

// describe is a match in few words: "ascend910b4 (A2)", "A3".
func describe(rules *chip.Rules, m chip.Match) string {
	fam, _ := rules.Family(m.Family)
	switch {
	case m.SoC != "" && fam.Title != "":
		return m.SoC + " (" + fam.Title + ")"
	case m.SoC != "":
		return m.SoC
	case m.Assumed != "":
		return fam.Title + ", others assume " + m.Assumed
	case fam.Title != "":
		return fam.Title
	}
	return "an accelerator without a known id"
}

// readTool understands the vendor tools. Their answers are recognised by
// content, so that a tool that answers in another form is still read.
func readTool(rules *chip.Rules, f *Facts, e *Evidence) {
	text := clean(e.Answer)
	var r Reading
	ok := false
	switch e.Source {
	case "npu-smi info":
		r, ok = parseNPUTable(rules, text)
	case "npu-smi info -m":
		r, ok = parseNPUMap(rules, text)
	case "npu-smi info -l":
		r, _, ok = parseNPUBlocks(rules, text)
	case "npu-smi info -t board":
		_, r, ok = parseNPUBlocks(rules, text)
	case "nvidia-smi":
		r, f.NVIDIA.WDDM, ok = parseGPUTable(text)
	case "nvidia-smi -L":
		r, ok = parseGPUList(text)
	default:
		r, ok = parseGPUKeys(text)
	}
	takeReading(rules, f, e, r, ok)
}

// maxDevices bounds what is kept of one answer: no machine has as many, and a
// hostile text may.
const maxDevices = 512

// takeReading files what a parser made of e, or why it could not.
func takeReading(rules *chip.Rules, f *Facts, e *Evidence, r Reading, ok bool) {
	if r.Vendor == "" {
		r.Tool, r.Vendor = e.Source, vendorOf(e.Source)
	}
	if len(r.Devices) > maxDevices {
		r.Devices, r.Cut = r.Devices[:maxDevices], true
	}
	r.Faults = faultsIn(rules, r.Vendor, clean(e.Answer))
	if e.ExitCode == 0 && e.Reason == "" && !f.Pasted {
		r.Cut = false // the tool itself ended well: nothing is missing
	}
	e.Reading = &r
	switch {
	case e.Absent:
		e.Reading, e.Says = nil, None
	case len(r.Devices) > 0:
		e.Says, e.Understood = Present, summary(rules, r)
	case len(r.Faults) > 0:
		e.Says = map[string]Presence{"present": Present, "none": None, "unknown": Unclear, "warning": Silent}[r.Faults[0].Says]
		e.Reason = r.Faults[0].Meaning
	case r.Total > 0:
		e.Says, e.Understood = Present, fmt.Sprintf("%d devices", r.Total)
	case ok && e.ExitCode == 0:
		e.Understood = versions(r)
	default:
		e.Says = Unclear
		if e.Reason == "" {
			e.Reason = "the answer was not understood"
		}
	}
}

func vendorOf(source string) string {
	if strings.HasPrefix(source, "npu-smi") {
		return chip.Huawei
	}
	return chip.NVIDIA
}

// faultsIn finds what a text complains about, each rule once.
func faultsIn(rules *chip.Rules, vendor, text string) []Fault {
	var out []Fault
	for _, l := range rules.Faults(text) {
		if x := l.Fault; vendor == "" || x.Vendor == vendor {
			out = append(out, Fault{Rule: x.Rule, Vendor: x.Vendor, Says: x.Says, Meaning: x.Meaning, Hint: x.Hint, Text: l.Line})
		}
	}
	return out
}

// summary is a reading in few words: "910B4 x 8", "Ascend950PR (A5)".
func summary(rules *chip.Rules, r Reading) string {
	counts, order := map[string]int{}, []string{}
	for _, d := range r.Devices {
		name := "no name"
		if m, ok := matchDevice(rules, r.Vendor, d); ok {
			name = describe(rules, m)
		} else if d.Name != "" {
			name = d.Name + " (not known)"
		} else if d.ID != "" {
			name = "NPU " + d.ID
			if r.Vendor == chip.NVIDIA {
				name = "GPU " + d.ID
			}
		}
		if counts[name] == 0 {
			order = append(order, name)
		}
		counts[name]++
	}
	for i, n := range order {
		if counts[n] > 1 {
			order[i] = fmt.Sprintf("%s x %d", n, counts[n])
		}
	}
	text := strings.Join(order, ", ")
	if r.Cut {
		text += " (the text is cut)"
	}
	return text
}

func versions(r Reading) string {
	var out []string
	if r.Driver != "" {
		out = append(out, "driver "+r.Driver)
	}
	if r.CUDA != "" {
		out = append(out, "CUDA up to "+r.CUDA)
	}
	if r.Firmware != "" {
		out = append(out, "firmware "+r.Firmware)
	}
	return strings.Join(out, ", ")
}

// readNPU is all that npu-smi's parsers find in text.
func readNPU(rules *chip.Rules, text string) []Reading {
	var out []Reading
	if r, ok := parseNPUTable(rules, text); ok {
		out = append(out, r)
	}
	if r, ok := parseNPUMap(rules, text); ok {
		out = append(out, r)
	}
	if l, b, ok := parseNPUBlocks(rules, text); ok {
		if len(l.Devices) > 0 || l.Total > 0 {
			out = append(out, l)
		}
		if len(b.Devices) > 0 {
			out = append(out, b)
		}
	}
	return out
}
