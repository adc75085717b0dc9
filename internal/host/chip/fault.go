package chip

import (
	"fmt"
	"regexp"
)

type faultsFile struct {
	Faults []Fault `yaml:"faults"`
}

// A Fault is a text by which a tool says that something is wrong.
type Fault struct {
	Rule    string `yaml:"rule"`
	Vendor  string `yaml:"vendor"`
	Match   string `yaml:"match"`
	Says    string `yaml:"says"` // present, unknown, none or warning
	Meaning string `yaml:"meaning"`
	Hint    string `yaml:"hint"`
	Source  string `yaml:"source"`

	match *regexp.Regexp
}

func (f *faultsFile) compile() error {
	for i := range f.Faults {
		var err error
		x := &f.Faults[i]
		if x.match, err = regexp.Compile("(?i)" + x.Match); err != nil {
			return fmt.Errorf("targets/chips/faults.yaml: rule %s: %w", x.Rule, err)
		}
	}
	return nil
}

// Faults lists the rules that match line, the first of each vendor only.
func (r *Rules) Faults(line string) []Fault {
	var out []Fault
	seen := map[string]bool{}
	for _, f := range r.faults.Faults {
		if !seen[f.Vendor] && f.match.MatchString(line) {
			seen[f.Vendor] = true
			out = append(out, f)
		}
	}
	return out
}
