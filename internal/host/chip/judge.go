package chip

import (
	"fmt"
	"slices"
)

type judgeFile struct {
	Rules []Judgement       `yaml:"rules"`
	Order []string          `yaml:"order"`
	Ask   map[string]string `yaml:"ask"`
	Known []string          `yaml:"known"`
}

// A Judgement is one rule that turns conditions into a verdict.
type Judgement struct {
	Rule   string   `yaml:"rule"`
	When   []string `yaml:"when"`
	State  string   `yaml:"state"`
	Reason string   `yaml:"reason"`
	Hint   string   `yaml:"hint"`
}

func (f *judgeFile) compile() error {
	if len(f.Rules) == 0 || len(f.Rules[len(f.Rules)-1].When) > 0 {
		return fmt.Errorf("targets/chips/judgement.yaml: the last rule must have no conditions")
	}
	return nil
}

// Judge is the first rule whose conditions all hold.
func (r *Rules) Judge(holds map[string]bool) Judgement {
	for _, j := range r.judge.Rules {
		if !slices.ContainsFunc(j.When, func(c string) bool { return !holds[c] }) {
			return j
		}
	}
	return Judgement{Rule: "none", State: "unknown"} // compile makes sure that one holds
}

// Judgements lists the rules in their order.
func (r *Rules) Judgements() []Judgement { return r.judge.Rules }

// Rank is the place of a source among those that may name a chip, best first.
func (r *Rules) Rank(source string) int {
	if i := slices.Index(r.judge.Order, source); i >= 0 {
		return i
	}
	return len(r.judge.Order)
}

// Ask is what to ask for the chip of a vendor; "" stands for no vendor.
func (r *Rules) Ask(vendor string) string { return r.judge.Ask[vendor] }

// Known are values for --soc, as examples.
func (r *Rules) Known() []string { return r.judge.Known }
