package explain

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/coregx/ahocorasick"
)

// A pattern is one compiled expression of a rule that the scan looks for.
type pattern struct {
	rule int  // index into set.rules
	log  bool // of Rule.Log, not of Rule.Any
	re   *regexp.Regexp
}

// A set is everything that a scan needs, compiled once.
type set struct {
	rules    []compiled
	patterns []pattern
	scan     *ahocorasick.Automaton
	users    [][]int // literal -> patterns; empty for a literal that asks for a rewrite
	rewrite  *strings.Replacer
	packages *packages
}

// compiled is a rule with its expressions.
type compiled struct {
	*Rule
	not            []*regexp.Regexp
	near           scope
	logAll, logAny []int // patterns
	logNone        []int
	logMay         []int
}

type scope struct{ all, any, none, may []*regexp.Regexp }

var loadSet = sync.OnceValues(func() (*set, error) {
	rules, err := loadRules()
	if err != nil {
		return nil, err
	}
	return newSet(rules)
})

// newSet compiles rules. Every pattern that the scan looks for needs a literal.
func newSet(rules []Rule) (*set, error) {
	s := &set{rules: make([]compiled, len(rules))}
	b := builder{set: s, ids: map[string]int{}}
	var errs []error
	for i := range rules {
		if err := b.rule(i, &rules[i]); err != nil {
			errs = append(errs, fmt.Errorf("rule %s: %w", rules[i].ID, err))
		}
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	phrases, err := loadPhrases()
	if err != nil {
		return nil, err
	}
	s.rewrite = phrases.replacer
	for _, l := range phrases.literals {
		b.literal(l)
	}
	if s.packages, err = loadPackages(); err != nil {
		return nil, err
	}
	s.scan, err = ahocorasick.NewBuilder().AddStrings(b.texts).Build()
	return s, err
}

// A builder collects patterns and the literals that stand for them.
type builder struct {
	set   *set
	texts []string
	ids   map[string]int
}

func (b *builder) rule(i int, r *Rule) error {
	c := compiled{Rule: r}
	if _, err := b.all(i, r.Any, false); err != nil {
		return err
	}
	var err error
	if c.not, err = compileAll(r.Not); err != nil {
		return err
	}
	if r.Near != nil {
		for _, p := range []struct {
			to   *[]*regexp.Regexp
			from []string
		}{{&c.near.all, r.Near.All}, {&c.near.any, r.Near.Any}, {&c.near.none, r.Near.None}, {&c.near.may, r.Near.May}} {
			if *p.to, err = compileAll(p.from); err != nil {
				return err
			}
		}
	}
	if r.Log != nil {
		for _, p := range []struct {
			to   *[]int
			from []string
		}{{&c.logAll, r.Log.All}, {&c.logAny, r.Log.Any}, {&c.logNone, r.Log.None}, {&c.logMay, r.Log.May}} {
			if *p.to, err = b.all(i, p.from, true); err != nil {
				return err
			}
		}
	}
	b.set.rules[i] = c
	return r.placeholders()
}

// all adds the expressions to the scan and returns their numbers.
func (b *builder) all(rule int, exprs []string, log bool) ([]int, error) {
	var ids []int
	var errs []error
	for _, e := range exprs {
		re, err := regexp.Compile(e)
		if err != nil {
			return nil, err
		}
		lits, err := literals(e)
		if err != nil {
			return nil, err
		}
		if shortest(lits) < minLiteral {
			errs = append(errs, fmt.Errorf("pattern %q has no literal of %d bytes that every match holds", e, minLiteral))
			continue
		}
		id := len(b.set.patterns)
		b.set.patterns = append(b.set.patterns, pattern{rule: rule, log: log, re: re})
		ids = append(ids, id)
		for _, l := range lits {
			n := b.literal(l)
			b.set.users[n] = append(b.set.users[n], id)
		}
	}
	return ids, errors.Join(errs...)
}

func (b *builder) literal(s string) int {
	if n, ok := b.ids[s]; ok {
		return n
	}
	n := len(b.texts)
	b.ids[s] = n
	b.texts = append(b.texts, s)
	b.set.users = append(b.set.users, nil)
	return n
}

func compileAll(exprs []string) ([]*regexp.Regexp, error) {
	var out []*regexp.Regexp
	for _, e := range exprs {
		re, err := regexp.Compile(e)
		if err != nil {
			return nil, err
		}
		out = append(out, re)
	}
	return out, nil
}

// candidates returns the patterns whose literal stands in text, each once.
func (s *set) candidates(text string) []int {
	var ids []int
	for _, m := range s.scan.FindAllOverlapping([]byte(text)) {
		ids = append(ids, s.users[m.PatternID]...)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}
