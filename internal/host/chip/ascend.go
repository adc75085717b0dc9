package chip

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

type ascendFile struct {
	Vendor   string     `yaml:"vendor"`
	PCI      pciRule    `yaml:"pci"`
	NotChips []string   `yaml:"not_chips"`
	Families []Family   `yaml:"families"`
	Names    []nameRule `yaml:"names"`
	Values   []nameRule `yaml:"values"`
	IDs      []idRule   `yaml:"ids"`
}

// A nameRule matches a whole chip name and, where npu is given, the NPU Name
// that the tool printed beside it; an empty npu means that there is none.
type nameRule struct {
	Rule    string            `yaml:"rule"`
	Match   string            `yaml:"match"`
	NPU     *string           `yaml:"npu"`
	Family  string            `yaml:"family"`
	SoC     string            `yaml:"soc"` // $1 of match, $npu of npu
	Listed  []string          `yaml:"listed"`
	Assumed map[string]string `yaml:"assumed"`
	Ask     string            `yaml:"ask"`
	Note    string            `yaml:"note"`
	Source  string            `yaml:"source"`

	name, npu *regexp.Regexp
}

type idRule struct {
	Rule   string   `yaml:"rule"`
	IDs    []string `yaml:"ids"`
	Family string   `yaml:"family"`
	Weak   bool     `yaml:"weak"` // the source of the id is not a host
	Source string   `yaml:"source"`
}

func (f *ascendFile) compile() error {
	for _, rules := range [][]nameRule{f.Names, f.Values} {
		for i := range rules {
			if err := rules[i].compile(); err != nil {
				return fmt.Errorf("targets/chips/ascend.yaml: rule %s: %w", rules[i].Rule, err)
			}
		}
	}
	return nil
}

func (n *nameRule) compile() (err error) {
	if n.Rule == "" || n.Source == "" {
		return fmt.Errorf("%q has no name or no source", n.Match)
	}
	if n.name, err = regexp.Compile("^(?:" + n.Match + ")$"); err != nil {
		return err
	}
	if n.NPU != nil {
		n.npu, err = regexp.Compile("^(?:" + *n.NPU + ")$")
	}
	return err
}

// Name understands a chip name of npu-smi or ACL, with the NPU Name that
// stood beside it ("" where there was none).
func (r *Rules) Name(name, npu string) (Match, bool) {
	m, ok := match(r.ascend.Names, normal(name), normal(npu))
	m.Vendor = Huawei
	return m, ok
}

func match(rules []nameRule, name, npu string) (Match, bool) {
	for _, n := range rules {
		sub := n.name.FindStringSubmatchIndex(name)
		if sub == nil || n.npu != nil && !n.npu.MatchString(npu) {
			continue
		}
		soc := string(n.name.ExpandString(nil, strings.ReplaceAll(n.SoC, "$npu", npu), name, sub))
		return Match{
			Rule: n.Rule, Family: n.Family, SoC: soc, Assumed: n.Assumed[name], Ask: n.Ask, Note: n.Note,
			Listed: slices.Contains(n.Listed, soc),
		}, true
	}
	return Match{}, false
}

func (f *ascendFile) id(device string) (Match, bool) {
	for _, i := range f.IDs {
		if slices.Contains(i.IDs, device) {
			return Match{Rule: i.Rule, Vendor: f.Vendor, Family: i.Family, Weak: i.Weak, Listed: true}, true
		}
	}
	return Match{}, false
}
