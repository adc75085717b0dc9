package explain

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// packages says which package of a distribution or of the package index brings
// a header, a library, a tool or a module.
type packages struct {
	tables map[string][]provider
}

type provider struct {
	Name   string   `yaml:"name"` // expression for the whole name
	Apt    []string `yaml:"apt"`
	Dnf    []string `yaml:"dnf"`
	Pip    []string `yaml:"pip"`
	Note   string   `yaml:"note"`
	re     *regexp.Regexp
	Origin string `yaml:"origin"` // where the fact comes from, when it is not the distribution itself
}

func loadPackages() (*packages, error) {
	const name = "signs/packages.yaml"
	p := &packages{}
	var f struct {
		About  string                `yaml:"about"`
		Tables map[string][]provider `yaml:"tables"`
	}
	if err := decode(signFiles, name, &f); err != nil {
		return nil, err
	}
	p.tables = f.Tables
	for table, list := range p.tables {
		for i := range list {
			re, err := regexp.Compile(`^(?:` + list[i].Name + `)$`)
			if err != nil {
				return nil, fmt.Errorf("%s: %s: %w", name, table, err)
			}
			list[i].re = re
		}
		if len(list) == 0 || list[len(list)-1].Name != ".*" {
			return nil, fmt.Errorf("%s: table %s has no last entry for .*", name, table)
		}
	}
	return p, nil
}

// complete fills the commands of fix for the value that a rule captured.
// Groups of the entry's expression are placeholders too.
func (p *packages) complete(fix Fix, values map[string]string) Fix {
	value := values[fix.Provides]
	if fix.Provides == "" || value == "" {
		return fix
	}
	for _, e := range p.tables[fix.Provides] {
		m := e.re.FindStringSubmatch(value)
		if m == nil {
			continue
		}
		local := groups(values, e.re, m)
		add := func(to *[]string, from []string) {
			for _, s := range from {
				*to = append(slices.Clone(*to), fill(s, local))
			}
		}
		add(&fix.Apt, e.Apt)
		add(&fix.Dnf, e.Dnf)
		add(&fix.Pip, e.Pip)
		if e.Note != "" {
			fix.Do = strings.TrimRight(fix.Do, " ") + ". " + fill(e.Note, local)
		}
		return fix
	}
	return fix
}
