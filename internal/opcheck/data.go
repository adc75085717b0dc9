// Package opcheck finds out whether the bits of an operator's result depend on
// the batch: any operator of an installed target, of torch, or of a Python
// file. It makes the contexts and judges what the script invar_probe saw.
package opcheck

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"github.com/invar-ops/invar/internal/data"
	"github.com/invar-ops/invar/internal/probe"
	"github.com/invar-ops/invar/internal/report"
)

//go:embed families.yaml
var familiesYAML []byte

// families is families.yaml.
type families struct {
	Sources []probe.Source      `yaml:"sources"`
	Names   map[string]string   `yaml:"names"`
	Shapes  map[string][]Shape  `yaml:"shapes"`
	Needs   map[string][]string `yaml:"needs"`
	Presets []Preset            `yaml:"presets"`
}

// A Shape is the reduction and the columns of one call.
type Shape struct {
	Size    int `yaml:"size"`
	Columns int `yaml:"columns"`
	Pool    int `yaml:"pool"`
}

// A Preset is a check that has a name.
type Preset struct {
	Name      string       `yaml:"name" json:"name"`
	Title     string       `yaml:"title" json:"title"`
	Python    string       `yaml:"python" json:"python,omitempty"` // module that the environment needs
	Operators []probe.Spec `yaml:"operators" json:"operators"`
	Dtypes    []string     `yaml:"dtypes" json:"dtypes"`
	Rows      []int        `yaml:"rows" json:"rows,omitempty"` // instead of the profile's; no other sweep then
	Seeds     int          `yaml:"seeds" json:"seeds"`
}

func load() (families, error) {
	var f families
	if err := data.Decode("internal/opcheck/families.yaml", familiesYAML, &f); err != nil {
		return f, err
	}
	for name, family := range f.Names {
		if len(f.Shapes[family]) == 0 {
			return f, fmt.Errorf("families.yaml: %s: the family %q has no shapes", name, family)
		}
	}
	return f, nil
}

// Presets lists the named checks.
func Presets() ([]Preset, error) {
	f, err := load()
	return f.Presets, err
}

func (f families) preset(name string) (Preset, error) {
	var names []string
	for _, p := range f.Presets {
		if p.Name == name {
			return p, nil
		}
		names = append(names, p.Name)
	}
	return Preset{}, report.Usagef("--preset %s: unknown", name).WithWant("one of "+strings.Join(names, ", "), name)
}

// instead is the preset's lines with the operators that o names in the place of
// its own: each in the lines of its family.
func (f families) instead(p Preset, o Options) []probe.Spec {
	if len(o.Operators) == 0 {
		return slices.Clone(p.Operators)
	}
	var out []probe.Spec
	for _, name := range o.Operators {
		family := f.family(name, o.Family)
		if !slices.ContainsFunc(p.Operators, func(s probe.Spec) bool { return s.Family == family }) {
			family = p.Operators[0].Family
		}
		for _, s := range p.Operators {
			if s.Family == family {
				s.Operator = name
				out = append(out, s)
			}
		}
	}
	return out
}

// family is how an operator is called: as was said, else by the last part of its name.
func (f families) family(operator, said string) string {
	if said != "" {
		return said
	}
	if family := f.Names[operator[strings.LastIndexAny(operator, ".:")+1:]]; family != "" {
		return family
	}
	return "rows"
}

// specs are the calls of one operator: its family by name unless it is given,
// the shapes of that family unless one is given.
func (f families) specs(operator string, o Options) ([]probe.Spec, error) {
	family := f.family(operator, o.Family)
	shapes, ok := f.Shapes[family]
	if !ok {
		known := make([]string, 0, len(f.Shapes))
		for k := range f.Shapes {
			known = append(known, k)
		}
		slices.Sort(known)
		return nil, report.Usagef("--family %s: unknown", family).WithWant("one of "+strings.Join(known, ", "), family)
	}
	if o.Size > 0 || o.Columns > 0 {
		shapes = []Shape{{Size: firstOf(o.Size, shapes[0].Size), Columns: firstOf(o.Columns, shapes[0].Columns)}}
	}
	var out []probe.Spec
	for _, s := range shapes {
		out = append(out, probe.Spec{Operator: operator, Family: family, Size: s.Size, Columns: s.Columns, Pool: s.Pool, Needs: f.Needs[family]})
	}
	return out, nil
}

func firstOf(a, b int) int {
	if a > 0 {
		return a
	}
	return b
}
