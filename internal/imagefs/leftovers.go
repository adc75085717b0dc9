package imagefs

import (
	"archive/tar"
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/invar-ops/invar/internal/data"
)

//go:embed leftovers.yaml
var leftoversYAML []byte

// A Leftover is something that a build used and that no program of the image
// needs.
type Leftover struct {
	Rule   string `json:"rule"` // id in leftovers.yaml
	What   string `json:"what"`
	Path   string `json:"path"` // the first, or the folder of all
	Files  int    `json:"files"`
	Bytes  int64  `json:"bytes"`
	Layers []int  `json:"layers"` // that brought it, from 1
	Fix    string `json:"fix"`
}

// A leftoverRule is one line of leftovers.yaml.
type leftoverRule struct {
	ID     string   `yaml:"id"`
	What   string   `yaml:"what"`
	Paths  []string `yaml:"paths"` // regular expressions over the path without its first slash
	Except []string `yaml:"except"`
	Fix    string   `yaml:"fix"`
	Source string   `yaml:"source"`

	paths, except []*regexp.Regexp
}

var leftoverRules = sync.OnceValues(func() ([]leftoverRule, error) {
	var f struct {
		Rules []leftoverRule `yaml:"rules"`
	}
	if err := data.Decode("leftovers.yaml", leftoversYAML, &f); err != nil {
		return nil, err
	}
	for n := range f.Rules {
		r := &f.Rules[n]
		for _, list := range []struct {
			texts []string
			into  *[]*regexp.Regexp
		}{{r.Paths, &r.paths}, {r.Except, &r.except}} {
			for _, text := range list.texts {
				re, err := regexp.Compile(text)
				if err != nil {
					return nil, fmt.Errorf("leftovers.yaml: rule %s: %w", r.ID, err)
				}
				*list.into = append(*list.into, re)
			}
		}
	}
	return f.Rules, nil
})

func (r leftoverRule) matches(p string) bool {
	hit := func(re *regexp.Regexp) bool { return re.MatchString(p) }
	return slices.ContainsFunc(r.paths, hit) && !slices.ContainsFunc(r.except, hit)
}

// findLeftovers goes through the merged tree.
func (i *Image) findLeftovers(t *tree) error {
	rules, err := leftoverRules()
	if err != nil {
		return err
	}
	found := make([]Leftover, len(rules))
	for p, n := range t.nodes {
		if n.kind != tar.TypeReg {
			continue
		}
		for r := range rules {
			if rules[r].matches(p) {
				found[r].add(p, n)
			}
		}
	}
	for r, l := range found {
		if l.Files > 0 {
			l.Rule, l.What, l.Fix = rules[r].ID, rules[r].What, rules[r].Fix
			slices.Sort(l.Layers)
			i.Leftover = append(i.Leftover, l)
		}
	}
	return nil
}

// add counts a file; the path becomes what all of them have in common.
func (l *Leftover) add(p string, n node) {
	p = "/" + p
	if l.Files == 0 {
		l.Path = p
	}
	for !strings.HasPrefix(p+"/", strings.TrimSuffix(l.Path, "/")+"/") {
		l.Path = l.Path[:max(strings.LastIndex(strings.TrimSuffix(l.Path, "/"), "/"), 0)]
	}
	if l.Path == "" {
		l.Path = "/"
	}
	l.Files, l.Bytes = l.Files+1, l.Bytes+n.size
	if !slices.Contains(l.Layers, n.layer+1) {
		l.Layers = append(l.Layers, n.layer+1)
	}
}
