package judge

import (
	"embed"
	"slices"
	"sync"

	"github.com/invar-ops/invar/internal/data"
	"github.com/invar-ops/invar/internal/verify/answer"
)

//go:embed all:rules
var rules embed.FS

// A Suspect is what a difference of this kind has turned out to be before.
type Suspect struct {
	ID        string `yaml:"id" json:"id"`
	Text      string `yaml:"text" json:"text"`
	Try       string `yaml:"try" json:"try"`
	Reference string `yaml:"reference" json:"reference"`

	Engine    []string    `yaml:"engine" json:"-"`    // empty: every engine
	Workload  string      `yaml:"workload" json:"-"`  // has differences
	Dimension Dimension   `yaml:"dimension" json:"-"` // has differences, in Workload where that is given
	Only      bool        `yaml:"only" json:"-"`      // no other dimension has any
	Kind      answer.Kind `yaml:"kind" json:"-"`      // all changed requests are of it
	Share     float64     `yaml:"share" json:"-"`     // of Workload's requests that changed, at least
	Every     bool        `yaml:"every" json:"-"`     // no workload with several arrangements is without differences between them
	Clean     []string    `yaml:"clean" json:"-"`     // workloads that have none
}

var loadSuspects = sync.OnceValues(func() ([]Suspect, error) {
	const name = "rules/suspects.yaml"
	b, err := rules.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var f struct {
		Suspects []Suspect `yaml:"suspects"`
	}
	err = data.Decode(name, b, &f)
	return f.Suspects, err
})

// suspects lists what res looks like, the most specific first.
func suspects(res *Result) ([]Suspect, error) {
	all, err := loadSuspects()
	if err != nil {
		return nil, err
	}
	var out []Suspect
	for _, s := range all {
		if s.fits(res) {
			out = append(out, s)
		}
	}
	return out, nil
}

func (s Suspect) fits(res *Result) bool {
	if len(s.Engine) > 0 && !slices.Contains(s.Engine, res.Server.Engine) {
		return false
	}
	dims, found := res.ByDim, s.Workload == ""
	for _, w := range res.Workloads {
		if w.Name == s.Workload {
			dims, found = w.ByDim, w.Differ > 0 && float64(w.Changed) >= s.Share*float64(w.Requests)
		}
		if slices.Contains(s.Clean, w.Name) && w.Differ > 0 || s.Every && agrees(w) {
			return false
		}
	}
	if !found {
		return false
	}
	if s.Dimension != "" && !slices.ContainsFunc(dims, func(c Count) bool { return c.Dimension == s.Dimension && c.Differ > 0 }) {
		return false
	}
	if s.Only && slices.ContainsFunc(res.ByDim, func(c Count) bool { return c.Dimension != s.Dimension && c.Differ > 0 }) {
		return false
	}
	if s.Kind != "" {
		t, k := total(res.Workloads), kinds(res.Workloads)
		return t.Changed > 0 && k[s.Kind] == t.Changed
	}
	return true
}

// agrees reports whether the arrangements of w were compared and none differs.
func agrees(w Workload) bool {
	return slices.ContainsFunc(w.ByDim, func(c Count) bool { return c.Dimension == Batch && c.Pairs > 0 && c.Differ == 0 })
}
