package explain

import (
	"bytes"
	"cmp"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/goccy/go-yaml"
)

// Level says what a match of a rule means for the diagnosis.
type Level string

const (
	// Cause is a reason that explains a failure by itself.
	Cause Level = "cause"
	// Weak is a reason that only counts when no cause was found: an exception
	// that names what is wrong, but not why.
	Weak Level = "weak"
	// Silent is a loss that the program only mentions: it goes on, often with
	// exit status 0, without what was asked for.
	Silent Level = "silent"
	// Wrapper is a failure that reports another one: make's "Error 1".
	Wrapper Level = "wrapper"
	// Success is the sign that a whole job ended well.
	Success Level = "success"
	// Progress is the sign that a part of it went well.
	Progress Level = "progress"
)

// A Rule is one entry of the rule files: how a kind of failure looks in a log,
// why it happens, how to make sure and what to do.
type Rule struct {
	ID     string `yaml:"id" json:"id"`
	Family string `yaml:"-" json:"family"`
	Level  Level  `yaml:"level" json:"level"` // cause when left out
	// Order decides between rules that match within the same few lines: the
	// lowest is the most specific. 50 when left out.
	Order int `yaml:"order" json:"order"`
	// Any are the patterns of the line itself, in RE2 syntax; one must match
	// and none of Not. Named groups can be used in the texts.
	Any []string `yaml:"any" json:"any"`
	Not []string `yaml:"not" json:"not,omitempty"`
	// Near is asked of the lines around, of the same process or build step.
	Near *Near `yaml:"near" json:"near,omitempty"`
	// Log is asked of the whole log.
	Log *Scope `yaml:"log" json:"log,omitempty"`
	// ConsequenceOf names rules that explain this one when they match too.
	ConsequenceOf []string `yaml:"consequence_of" json:"consequence_of,omitempty"`
	// Transient failures are forgiven when the log ends well: a retry helped.
	Transient bool `yaml:"transient" json:"transient,omitempty"`
	// Likely marks a cause that the text suggests but does not prove.
	Likely bool `yaml:"likely" json:"likely,omitempty"`

	Why   string   `yaml:"cause" json:"cause"`
	Check []string `yaml:"check" json:"check,omitempty"` // commands that tell whether it is so
	Fix   Fix      `yaml:"fix" json:"fix"`
	Bring []string `yaml:"bring" json:"bring,omitempty"` // lines to look for, of wrappers
	See   []string `yaml:"see" json:"see,omitempty"`

	Example string   `yaml:"example" json:"example"`         // a log of which this is the diagnosis
	Unlike  []string `yaml:"unlike" json:"unlike,omitempty"` // logs of which it is not
}

// Near is a Scope with its reach in lines.
type Near struct {
	Before int `yaml:"before" json:"before,omitempty"`
	After  int `yaml:"after" json:"after,omitempty"`
	Scope  `yaml:",inline"`
}

// Scope holds patterns over more than one line.
type Scope struct {
	All  []string `yaml:"all" json:"all,omitempty"`
	Any  []string `yaml:"any" json:"any,omitempty"`
	None []string `yaml:"none" json:"none,omitempty"`
	May  []string `yaml:"may" json:"may,omitempty"` // only for their named groups
}

// Fix is what to do. Apt, Dnf and Pip are commands or package names as the
// installers take them.
type Fix struct {
	Do  string   `yaml:"do" json:"do"`
	Run []string `yaml:"run" json:"run,omitempty"`
	Apt []string `yaml:"apt" json:"apt,omitempty"`
	Dnf []string `yaml:"dnf" json:"dnf,omitempty"`
	Pip []string `yaml:"pip" json:"pip,omitempty"`
	// Provides names the table of signs/packages.yaml in which the captured
	// group of that name is looked up for apt, dnf and pip.
	Provides string `yaml:"provides" json:"provides,omitempty"`
}

//go:embed all:rules
var ruleFiles embed.FS

type family struct {
	Family string `yaml:"family"`
	About  string `yaml:"about"`
	Rules  []Rule `yaml:"rules"`
}

var loadRules = sync.OnceValues(func() ([]Rule, error) { return readRules(ruleFiles) })

// readRules reads every rule file below fsys, in the order of their names.
func readRules(fsys fs.FS) ([]Rule, error) {
	names, err := fs.Glob(fsys, "rules/*.yaml")
	if err != nil {
		return nil, err
	}
	var rules []Rule
	seen := map[string]string{}
	for _, name := range names {
		var f family
		if err := decode(fsys, name, &f); err != nil {
			return nil, err
		}
		if want := strings.TrimSuffix(path.Base(name), ".yaml"); f.Family != want {
			return nil, fmt.Errorf("%s: want family %s, got %q", name, want, f.Family)
		}
		for _, r := range f.Rules {
			r.Family = f.Family
			r.Level = cmp.Or(r.Level, Cause)
			r.Order = cmp.Or(r.Order, 50)
			if other := seen[r.ID]; other != "" {
				return nil, fmt.Errorf("%s: rule %s is also in %s", name, r.ID, other)
			}
			seen[r.ID] = name
			if err := r.valid(); err != nil {
				return nil, fmt.Errorf("%s: rule %s: %w", name, r.ID, err)
			}
			rules = append(rules, r)
		}
	}
	for _, r := range rules {
		for _, id := range r.ConsequenceOf {
			if seen[id] == "" {
				return nil, fmt.Errorf("%s: rule %s: consequence_of names an unknown rule %s", seen[r.ID], r.ID, id)
			}
		}
	}
	return rules, nil
}

// decode reads a YAML file strictly: an unknown or a repeated key is an error
// that says where it stands.
func decode(fsys fs.FS, name string, into any) error {
	text, err := fs.ReadFile(fsys, name)
	if err != nil {
		return err
	}
	dec := yaml.NewDecoder(bytes.NewReader(text), yaml.Strict())
	if err := dec.Decode(into); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func (r *Rule) valid() error {
	var errs []error
	need := func(ok bool, what string) {
		if !ok {
			errs = append(errs, errors.New(what))
		}
	}
	need(r.ID != "", "no id")
	need(len(r.Any) > 0, "no pattern in any")
	need(r.Example != "", "no example")
	switch r.Level {
	case Success, Progress:
	case Wrapper:
		need(r.Why != "" && len(r.Bring) > 0, "a wrapper needs cause and bring")
	case Cause, Weak, Silent:
		need(r.Why != "" && r.Fix.Do != "", "no cause or no fix.do")
		need(len(r.See) > 0, "no reference in see")
	default:
		errs = append(errs, fmt.Errorf("unknown level %q", r.Level))
	}
	return errors.Join(errs...)
}

// Rules lists all rules, by family and place in their file.
func Rules() ([]Rule, error) {
	rules, err := loadRules()
	return slices.Clone(rules), err
}

// Lookup finds a rule by its id.
func Lookup(id string) (Rule, bool) {
	rules, _ := loadRules()
	i := slices.IndexFunc(rules, func(r Rule) bool { return r.ID == id })
	if i < 0 {
		return Rule{}, false
	}
	return rules[i], true
}
