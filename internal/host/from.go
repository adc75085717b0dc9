package host

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/invar-ops/invar/internal/host/chip"
)

// From reads the pasted output of one tool, or of several. It recognises the
// tools by what they print, in whatever state it was copied, and keeps the
// facts apart from those of this machine: nothing is concluded from what a
// text does not hold.
func From(r io.Reader) (Facts, error) {
	rules, err := chip.Load()
	if err != nil {
		return Facts{}, err
	}
	b, err := io.ReadAll(io.LimitReader(r, maxText))
	if err != nil {
		return Facts{}, fmt.Errorf("reading the text: %w", err)
	}
	p := &paste{rules: rules, text: clean(string(fromUTF16(b))), facts: Facts{Pasted: true}}
	p.npu()
	p.gpu()
	p.bus()
	p.software()
	p.faults()
	settle(&p.facts)
	return p.facts, nil
}

// A paste takes a text apart. Every parser sees the whole text and takes the
// lines that are its own.
type paste struct {
	rules *chip.Rules
	text  string
	facts Facts
}

func (p *paste) add(r Reading) {
	e := Evidence{Source: r.Tool, Asked: "text: " + r.Tool, Answer: p.text}
	faults := r.Faults
	takeReading(p.rules, &p.facts, &e, r, true)
	e.Reading.Faults = faults // of the whole text: faults() files them once
	if e.Says == Unclear || e.Reason != "" && len(r.Devices) == 0 {
		e.Says, e.Reason, e.Understood = Silent, "", versions(r)
	}
	p.facts.Evidence = append(p.facts.Evidence, e)
	if !slices.Contains(p.facts.Recognised, r.Tool) {
		p.facts.Recognised = append(p.facts.Recognised, r.Tool)
	}
}

func (p *paste) npu() {
	for _, r := range readNPU(p.rules, p.text) {
		p.add(r)
	}
}

func (p *paste) gpu() {
	if r, wddm, ok := parseGPUTable(p.text); ok {
		p.facts.NVIDIA.WDDM = wddm
		p.add(r)
	}
	if r, ok := parseGPUList(p.text); ok {
		p.add(r)
	}
	if r, ok := parseGPUKeys(p.text); ok {
		p.add(r)
	}
	if r, ok := parseGPUQuery(p.text, nil); ok {
		p.add(r)
	}
	if strings.Contains(p.text, "NVRM version") {
		if r, ok := parseProcNVIDIA(p.text); ok {
			p.add(r)
		}
	}
}

func (p *paste) bus() {
	found := parseLspci(p.rules, p.text)
	for _, vendor := range []string{chip.Huawei, chip.NVIDIA} {
		if r := found[vendor]; r != nil {
			p.add(*r)
		}
	}
}

// software reads version files. They name no chip, which the verdict says.
func (p *paste) software() {
	toolkits := append(parseToolkit(p.text), parseVersionCfg(p.text)...)
	if len(toolkits) > 0 {
		p.facts.Ascend.CANN = toolkits
		p.note("CANN version file", "CANN "+toolkits[0].Version)
	}
	if m := componentVersion.FindStringSubmatch(p.text); m != nil && len(toolkits) == 0 {
		p.note("CANN component version file", strings.TrimSpace(m[1]+" "+m[2]+m[3]))
	}
	if strings.Contains(p.text, "ascendhal_version") || strings.Contains(p.text, "compatible_version_fw") {
		if v := driverVersion(p.text); v != "" {
			p.facts.Ascend.Installed = v
			p.note("Ascend driver version.info", "driver "+v)
		}
	}
}

// componentVersion is the version line of opp and of nnal.
var componentVersion = regexp.MustCompile(`(?m)^\s*(?:version_dir=([0-9]\S*)|(Ascend-cann-\S+)( : [0-9]\S*))`)

func (p *paste) note(tool, understood string) {
	p.facts.Recognised = append(p.facts.Recognised, tool)
	p.facts.Evidence = append(p.facts.Evidence, Evidence{Source: tool, Asked: "text: " + tool, Answer: p.text, Understood: understood})
}

// faults files what the tools complained about, one evidence a vendor.
func (p *paste) faults() {
	for _, vendor := range []string{chip.Huawei, chip.NVIDIA} {
		found := faultsIn(p.rules, vendor, p.text)
		if len(found) == 0 {
			continue
		}
		tool := "npu-smi"
		if vendor == chip.NVIDIA {
			tool = "nvidia-smi"
		}
		name := "error message about " + tool
		p.facts.Recognised = append(p.facts.Recognised, name)
		p.facts.Evidence = append(p.facts.Evidence, Evidence{
			Source: name, Asked: "text: " + name, Answer: p.text, Reason: found[0].Meaning,
			Reading: &Reading{Tool: name, Vendor: vendor, Faults: found},
		})
	}
}
