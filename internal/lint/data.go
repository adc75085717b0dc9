// Package lint says what stands against batch invariance in the way a server is
// started: settings that are missing, and known defects of the engine. The
// knowledge is data; unknown stays unknown.
package lint

import (
	"embed"
	"fmt"
	"regexp"
	"slices"
	"sync"

	"github.com/invar-ops/invar/internal/data"
)

//go:embed data/*.yaml
var files embed.FS

// A Rule is one finding that lint can make.
type Rule struct {
	ID         string            `yaml:"id" json:"id"`
	Title      string            `yaml:"title" json:"title"`
	Kind       string            `yaml:"kind" json:"kind"` // setting, numerics, start, performance or visibility
	When       map[string]string `yaml:"when" json:"when"` // all must hold
	Why        string            `yaml:"why" json:"why"`
	Fix        string            `yaml:"fix" json:"fix"`
	Reference  string            `yaml:"reference" json:"reference"`
	Confidence string            `yaml:"confidence" json:"confidence"` // high, medium or low
}

type flag struct {
	Names   []string `yaml:"names"`
	Fact    string   `yaml:"fact"`
	Switch  string   `yaml:"switch"`  // value of a flag that takes none
	Set     string   `yaml:"set"`     // value whatever the flag's own says
	Default string   `yaml:"default"` // of the engine
	JSON    []struct {
		Key     string `yaml:"key"`
		Fact    string `yaml:"fact"`
		Default string `yaml:"default"`
	} `yaml:"json"`
}

type variable struct {
	Name    string `yaml:"name"`
	Fact    string `yaml:"fact"`
	Default string `yaml:"default"`
}

type engine struct {
	Name        string     `yaml:"name"`
	Source      string     `yaml:"source"`
	Positional  string     `yaml:"positional"` // fact of the first argument without a flag
	Flags       []flag     `yaml:"flags"`
	Environment []variable `yaml:"environment"`
	Files       []string   `yaml:"files"` // flags whose value is a file with more arguments
}

type model struct {
	Pattern   string   `yaml:"pattern"`
	Families  []string `yaml:"families"`
	Validated []string `yaml:"validated"`
	re        *regexp.Regexp
}

type knowledge struct {
	rules   []Rule
	engines []engine
	models  []model
}

// load reads the data once.
var load = sync.OnceValues(func() (knowledge, error) {
	var k knowledge
	var rules struct {
		Rules []Rule `yaml:"rules"`
	}
	var flags struct {
		Engines []engine `yaml:"engines"`
	}
	var models struct {
		Models []model `yaml:"models"`
		Source string  `yaml:"source"`
	}
	for name, into := range map[string]any{"rules": &rules, "flags": &flags, "models": &models} {
		b, err := files.ReadFile("data/" + name + ".yaml")
		if err != nil {
			return k, err
		}
		if err := data.Decode("internal/lint/data/"+name+".yaml", b, into); err != nil {
			return k, err
		}
	}
	k.rules, k.engines, k.models = rules.Rules, flags.Engines, models.Models
	for i := range k.models {
		re, err := regexp.Compile(k.models[i].Pattern)
		if err != nil {
			return k, fmt.Errorf("models.yaml: %w", err)
		}
		k.models[i].re = re
	}
	return k, k.check()
})

// check finds mistakes that a decoder cannot.
func (k knowledge) check() error {
	var ids []string
	for _, r := range k.rules {
		if slices.Contains(ids, r.ID) || r.Title == "" || r.Why == "" || r.Fix == "" || r.Reference == "" || len(r.When) == 0 {
			return fmt.Errorf("rules.yaml: %s: twice, or without title, when, why, fix or reference", r.ID)
		}
		ids = append(ids, r.ID)
		if !slices.Contains([]string{"setting", "numerics", "start", "performance", "visibility"}, r.Kind) || !slices.Contains([]string{"high", "medium", "low"}, r.Confidence) {
			return fmt.Errorf("rules.yaml: %s: kind %q, confidence %q", r.ID, r.Kind, r.Confidence)
		}
		for fact, want := range r.When {
			if _, err := condition(fact, want, Facts{}); err != nil {
				return fmt.Errorf("rules.yaml: %s: %w", r.ID, err)
			}
		}
	}
	return nil
}

// Rules lists what lint can find.
func Rules() ([]Rule, error) {
	k, err := load()
	return k.rules, err
}
