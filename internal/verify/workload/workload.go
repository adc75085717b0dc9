// Package workload holds what is asked of a server, as data: which prompts, in
// which arrangements, how often. It sends nothing.
package workload

import (
	"embed"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/invar-ops/invar/internal/data"
)

//go:embed all:rules
var rules embed.FS

// Mode says how the requests of a run meet.
type Mode string

// The modes.
const (
	Alone      Mode = "alone"      // one after the other: batch size 1
	List       Mode = "list"       // one request that holds all prompts
	Concurrent Mode = "concurrent" // all at once
	Staggered  Mode = "staggered"  // one after the other without waiting for answers
	Arrival    Mode = "arrival"    // the prompts decode when the fillers arrive
)

var modes = []Mode{Alone, List, Concurrent, Staggered, Arrival}

// Cache says what the prefix cache may hold for a run.
type Cache string

// The cache states. A salt of its own makes a run cold without a restart.
const (
	Cold       Cache = "cold"        // a salt of its own for the run
	Apart      Cache = "apart"       // a salt of its own for each request
	Warm       Cache = "warm"        // the salt of the runs before, which filled the cache
	FillAlone  Cache = "fill-alone"  // warm after other prompts of the same prefix wrote it, one by one
	FillAtOnce Cache = "fill-atonce" // warm after they wrote it at once, among fillers
)

var caches = []Cache{Cold, Apart, Warm, FillAlone, FillAtOnce}

// Sampling is what every request of a workload asks for.
type Sampling struct {
	MaxTokens      int     `yaml:"max_tokens" json:"max_tokens"`
	Temperature    float64 `yaml:"temperature" json:"temperature"`
	TopP           float64 `yaml:"top_p" json:"top_p"`
	Seed           int     `yaml:"seed" json:"seed"`
	Logprobs       int     `yaml:"logprobs" json:"logprobs"`
	PromptLogprobs int     `yaml:"prompt_logprobs" json:"prompt_logprobs,omitempty"`
	IgnoreEOS      bool    `yaml:"ignore_eos" json:"ignore_eos,omitempty"`
}

// An Arrangement is one way to send the prompts, done Repeat times.
type Arrangement struct {
	Name    string        `yaml:"name" json:"name"`
	Mode    Mode          `yaml:"mode" json:"mode"`
	Repeat  int           `yaml:"repeat" json:"repeat"`
	Fillers string        `yaml:"fillers" json:"fillers,omitempty"` // a style of prompts; "" is none
	Extra   int           `yaml:"extra" json:"extra,omitempty"`     // how many fillers
	Cache   Cache         `yaml:"cache" json:"cache"`
	Gap     time.Duration `yaml:"gap" json:"gap,omitempty"` // between arrivals, for staggered
	Stream  bool          `yaml:"stream" json:"stream,omitempty"`
	First   bool          `yaml:"first" json:"first,omitempty"` // before everything else that a start is asked
}

// A Workload is prompts, sampling and the arrangements whose answers must agree.
type Workload struct {
	Name     string        `yaml:"name" json:"name"`
	About    string        `yaml:"about" json:"about"`
	Source   string        `yaml:"source" json:"source"`
	Prompts  Prompts       `yaml:"prompts" json:"prompts"`
	Sampling Sampling      `yaml:"sampling" json:"sampling"`
	Runs     []Arrangement `yaml:"runs" json:"runs"`
	Ranks    bool          `yaml:"ranks" json:"ranks,omitempty"` // also send it to each data-parallel rank
}

// A Preset is workloads that are run together.
type Preset struct {
	Name      string   `yaml:"name" json:"name"`
	About     string   `yaml:"about" json:"about"`
	Workloads []string `yaml:"workloads" json:"workloads"`
}

type file struct {
	Source    string     `yaml:"source"`
	Presets   []Preset   `yaml:"presets"`
	Workloads []Workload `yaml:"workloads"`
}

var load = sync.OnceValues(func() (file, error) {
	const name = "rules/workloads.yaml"
	b, err := rules.ReadFile(name)
	if err != nil {
		return file{}, err
	}
	var f file
	if err := data.Decode(name, b, &f); err != nil {
		return file{}, err
	}
	for i := range f.Workloads {
		if err := f.Workloads[i].check(); err != nil {
			return file{}, fmt.Errorf("%s: workload %s: %w", name, f.Workloads[i].Name, err)
		}
	}
	return f, nil
})

// All lists the workloads.
func All() ([]Workload, error) {
	f, err := load()
	return slices.Clone(f.Workloads), err
}

// Presets lists the presets.
func Presets() ([]Preset, error) {
	f, err := load()
	return slices.Clone(f.Presets), err
}

// check finds what the decoder cannot know, and fills in defaults.
func (w *Workload) check() error {
	if len(w.Runs) == 0 || w.Prompts.Count < 1 || w.Sampling.MaxTokens < 1 {
		return fmt.Errorf("runs, prompts.count and sampling.max_tokens are needed")
	}
	if !knownStyle(w.Prompts.Style) {
		return fmt.Errorf("unknown style %q", w.Prompts.Style)
	}
	for i := range w.Runs {
		r := &w.Runs[i]
		r.Repeat = max(r.Repeat, 1)
		if r.Cache == "" {
			r.Cache = Cold
		}
		switch {
		case !slices.Contains(modes, r.Mode):
			return fmt.Errorf("run %s: unknown mode %q", r.Name, r.Mode)
		case !slices.Contains(caches, r.Cache):
			return fmt.Errorf("run %s: unknown cache %q", r.Name, r.Cache)
		case r.Fillers != "" && (!knownStyle(r.Fillers) || r.Extra < 1):
			return fmt.Errorf("run %s: fillers need a known style and extra", r.Name)
		case r.First && (r.Repeat > 1 || r.Mode != Alone):
			return fmt.Errorf("run %s: what is first is sent once, alone", r.Name)
		}
	}
	return nil
}

// Fresh reports whether w is about the first requests after a start: it says
// nothing about a server that has answered others.
func (w Workload) Fresh() bool {
	return slices.ContainsFunc(w.Runs, func(a Arrangement) bool { return a.First })
}

// Requests is how many prompts one lifetime of w sends, fillers included.
func (w Workload) Requests() int {
	n := 0
	for _, r := range w.Runs {
		n += r.Repeat * (w.Prompts.Count + r.Extra)
	}
	return n
}
