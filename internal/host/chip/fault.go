package chip

import (
	"fmt"
	"regexp"
	"strings"
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

// A FaultLine is a fault and the line of a text that it was found in.
type FaultLine struct {
	Fault Fault
	Line  string
}

// Faults finds what a text complains about: in each line the first rule of
// each vendor, each rule once. Most texts hold none, so whole-text matches go
// first.
func (r *Rules) Faults(text string) []FaultLine {
	var may []Fault
	for _, f := range r.faults.Faults {
		if f.match.MatchString(text) {
			may = append(may, f)
		}
	}
	if len(may) == 0 {
		return nil
	}
	var out []FaultLine
	done := map[string]bool{}
	for line := range strings.SplitSeq(text, "\n") {
		vendor := map[string]bool{}
		for _, f := range may {
			if vendor[f.Vendor] || !f.match.MatchString(line) {
				continue
			}
			vendor[f.Vendor] = true
			if !done[f.Rule] {
				done[f.Rule] = true
				out = append(out, FaultLine{f, strings.TrimSpace(line)})
			}
		}
	}
	return out
}
