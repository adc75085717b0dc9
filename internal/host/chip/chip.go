// Package chip knows which name, PCI id, compute capability or SOC_VERSION
// means which accelerator. Everything it knows is data in targets/chips; a
// name that no rule matches stays unknown, and there is no default.
package chip

import (
	"strings"
	"sync"

	"github.com/invar-ops/invar/internal/data"
	"github.com/invar-ops/invar/targets"
)

// Vendors as they are named in the data.
const (
	Huawei = "huawei"
	NVIDIA = "nvidia"
)

// A Match is what a rule concluded from one piece of evidence.
type Match struct {
	Rule    string `json:"rule"`
	Vendor  string `json:"vendor"`
	Family  string `json:"family"`            // "ascend910b", "hopper"
	SoC     string `json:"soc,omitempty"`     // empty when the evidence names the family only
	Assumed string `json:"assumed,omitempty"` // the SoC others take for this name; never used as a default
	Ask     string `json:"ask,omitempty"`     // command that would tell the SoC
	Note    string `json:"note,omitempty"`
	Listed  bool   `json:"listed"` // the SoC is one that was seen before
	Weak    bool   `json:"weak,omitempty"`
}

// A Family is a generation of chips.
type Family struct {
	ID      string   `yaml:"id"`
	Title   string   `yaml:"title"`
	Target  string   `yaml:"target"`  // folder in targets/; empty when refused
	Image   string   `yaml:"image"`   // token in tags of vendor images
	SMs     []string `yaml:"sms"`     // nvidia: the SoCs of the family
	Refused string   `yaml:"refused"` // why nothing is built for it
	Source  string   `yaml:"source"`
	Vendor  string   `yaml:"-"`
}

// A pciRule says which PCI functions of a vendor are accelerators.
type pciRule struct {
	Vendor  string   `yaml:"vendor"`
	Classes []string `yaml:"classes"`
	Names   []string `yaml:"names"`   // words in the vendor names that lspci prints
	Drivers []string `yaml:"drivers"` // kernel drivers of the vendor; empty when not listed
}

// Rules is everything that is known about chips.
type Rules struct {
	ascend ascendFile
	nvidia nvidiaFile
	words  wordsFile
	faults faultsFile
	isa    isaFile
	judge  judgeFile
}

// Load reads the embedded rules once.
var Load = sync.OnceValues(func() (*Rules, error) {
	r := &Rules{}
	files := []struct {
		name string
		file interface{ compile() error }
	}{
		{"chips/ascend.yaml", &r.ascend},
		{"chips/nvidia.yaml", &r.nvidia},
		{"chips/words.yaml", &r.words},
		{"chips/faults.yaml", &r.faults},
		{"chips/isa.yaml", &r.isa},
		{"chips/judgement.yaml", &r.judge},
	}
	for _, f := range files {
		if err := read(f.name, f.file); err != nil {
			return nil, err
		}
		if err := f.file.compile(); err != nil {
			return nil, err
		}
	}
	return r, nil
})

func read(file string, v any) error {
	b, err := targets.FS.ReadFile(file)
	if err != nil {
		return err
	}
	return data.Decode("targets/"+file, b, v)
}

// Families lists all families of both vendors.
func (r *Rules) Families() []Family {
	var out []Family
	for _, f := range r.ascend.Families {
		f.Vendor = r.ascend.Vendor
		out = append(out, f)
	}
	for _, f := range r.nvidia.Families {
		f.Vendor = r.nvidia.Vendor
		out = append(out, f)
	}
	return out
}

// Family finds a family by id.
func (r *Rules) Family(id string) (Family, bool) {
	for _, f := range r.Families() {
		if f.ID == id {
			return f, true
		}
	}
	return Family{}, false
}

// Refused says why nothing is built for a chip, or "".
func (r *Rules) Refused(family, soc string) string {
	f, ok := r.Family(family)
	switch {
	case !ok:
		return ""
	case f.Refused != "":
		return f.Refused
	case f.Target == "" && f.Vendor == NVIDIA:
		return r.nvidia.tooOld(soc)
	}
	return ""
}

// Value understands what a person wrote after --soc or into SOC_VERSION. The
// last result is a note on a value that is known to be ambiguous.
func (r *Rules) Value(text string) (m Match, ok bool, note string) {
	name := normal(text)
	if m, found := match(r.ascend.Values, name, ""); found {
		m.Vendor = Huawei
		return m, m.Family != "", m.Note
	}
	if m, ok = r.Name(text, ""); ok {
		return m, true, ""
	}
	if m, ok = r.SM(text); ok {
		return m, true, ""
	}
	return Match{}, false, ""
}

func normal(name string) string {
	s := strings.ToLower(strings.Join(strings.Fields(name), ""))
	if rest, ok := strings.CutPrefix(s, "ascend"); ok {
		return "ascend" + strings.TrimLeft(rest, "-_")
	}
	return s
}
