package chip

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

type nvidiaFile struct {
	Vendor   string   `yaml:"vendor"`
	PCI      pciRule  `yaml:"pci"`
	Families []Family `yaml:"families"`
	Minimum  struct {
		Reason string `yaml:"reason"` // {cc} stands for the capability found
		Source string `yaml:"source"`
	} `yaml:"minimum"`
	Models    []modelRule `yaml:"models"`
	Hosts     []hostRule  `yaml:"hosts"`
	Codenames []modelRule `yaml:"codenames"`
	Blocks    []block     `yaml:"blocks"`

	models []model
}

type modelRule struct {
	SM    string   `yaml:"sm"`
	Names []string `yaml:"names"`
}

// A hostRule says which CPU the board of a model carries.
type hostRule struct {
	Arch  string   `yaml:"arch"`
	Names []string `yaml:"names"`
}

// A block is a range of PCI device ids, both ends included.
type block struct {
	From string `yaml:"from"`
	To   string `yaml:"to"`
	SM   string `yaml:"sm"`

	from, to uint64
}

func (f *nvidiaFile) compile() (err error) {
	for i := range f.Blocks {
		b := &f.Blocks[i]
		if b.from, err = strconv.ParseUint(b.From, 16, 16); err != nil {
			return fmt.Errorf("targets/chips/nvidia.yaml: block %s: %w", b.From, err)
		}
		if b.to, err = strconv.ParseUint(b.To, 16, 16); err != nil || b.to < b.from {
			return fmt.Errorf("targets/chips/nvidia.yaml: block %s to %s is not a range", b.From, b.To)
		}
	}
	for _, m := range f.Models {
		for _, n := range m.Names {
			f.models = append(f.models, newModel(n, m.SM))
		}
	}
	return nil
}

// tooOld is the reason why soc is refused.
func (f *nvidiaFile) tooOld(soc string) string {
	cc := "of this chip"
	if m := smPattern.FindStringSubmatch(soc); m != nil {
		cc = m[1] + "." + m[2]
	}
	return strings.ReplaceAll(f.Minimum.Reason, "{cc}", cc)
}

var (
	smPattern  = regexp.MustCompile(`^(?:sm_?|compute_?)?([0-9]{1,2})([0-9])[af]?$`)
	capPattern = regexp.MustCompile(`^([0-9]{1,2})\.([0-9])[af]?$`)
)

// SM understands a compute capability: 9.0, sm_90, sm90a, compute_90.
func (r *Rules) SM(text string) (Match, bool) {
	s := strings.ToLower(strings.TrimSpace(text))
	m := capPattern.FindStringSubmatch(s)
	if m == nil && !strings.ContainsAny(s, "sc") {
		return Match{}, false // a bare number is not a capability: 90, 910
	}
	if m == nil {
		m = smPattern.FindStringSubmatch(s)
	}
	if m == nil {
		return Match{}, false
	}
	return r.sm("compute-capability", "sm_"+m[1]+m[2])
}

// sm is the match for one SoC. A capability that no family lists keeps its
// name without a family, so that it is shown and not judged.
func (r *Rules) sm(rule, sm string) (Match, bool) {
	for _, f := range r.nvidia.Families {
		if slices.Contains(f.SMs, sm) {
			return Match{Rule: rule, Vendor: NVIDIA, Family: f.ID, SoC: sm, Listed: true}, true
		}
	}
	return Match{Rule: rule, Vendor: NVIDIA, SoC: sm}, sm != ""
}

// Codename understands the chip in a device text of lspci: "GA100 [A100 SXM4
// 80GB]", or its bracket where the code name is not known.
func (r *Rules) Codename(text string) (Match, bool) {
	for _, w := range strings.FieldsFunc(text, notWord) {
		for _, c := range r.nvidia.Codenames {
			for _, n := range c.Names {
				// GA102GL, TU104M: the letters after the number are a package variant.
				if rest, ok := strings.CutPrefix(w, n); ok && strings.Trim(rest, "GLMBS") == "" {
					return r.sm("pci-code-name", c.SM)
				}
			}
		}
	}
	return r.GPU(text, false)
}

func notWord(r rune) bool { return strings.ContainsRune(" \t-_/()[],:", r) }

// HostArch is the architecture of the CPU that belongs to a GPU of this name, or "".
func (r *Rules) HostArch(name string) string {
	words := strings.FieldsFunc(name, notWord)
	for _, h := range r.nvidia.Hosts {
		for _, n := range h.Names {
			if newModel(n, "").in(words) {
				return h.Arch
			}
		}
	}
	return ""
}

// OwnDriver reports whether a kernel driver is the vendor's own. It is true
// where the data names none.
func (r *Rules) OwnDriver(vendor, driver string) bool {
	drivers := r.ascend.PCI.Drivers
	if vendor == NVIDIA {
		drivers = r.nvidia.PCI.Drivers
	}
	return len(drivers) == 0 && driver != "vfio-pci" || slices.Contains(drivers, driver)
}
