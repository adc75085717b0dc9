// Package capacity says how many requests fit into a server's KV cache, and so
// whether a load can lead to preemption, which breaks batch invariance where
// recomputing takes another path (Ascend). Facts come from the start-up log, from
// /metrics or from flags.
package capacity

import (
	_ "embed"
	"fmt"
	"regexp"
	"sort"
	"strings"
	"sync"

	"github.com/invar-ops/invar/internal/data"
)

//go:embed patterns.yaml
var patternsYAML []byte

type pattern struct {
	Event   string `yaml:"event"`
	Pattern string `yaml:"pattern"`
	Wraps   bool   `yaml:"wraps"`
	Source  string `yaml:"source"`
	re      *regexp.Regexp
}

var patterns = sync.OnceValues(func() ([]pattern, error) {
	var f struct {
		Patterns []pattern `yaml:"patterns"`
	}
	if err := data.Decode("internal/capacity/patterns.yaml", patternsYAML, &f); err != nil {
		return nil, err
	}
	for i := range f.Patterns {
		re, err := regexp.Compile(f.Patterns[i].Pattern)
		if err != nil {
			return nil, fmt.Errorf("patterns.yaml: %s: %w", f.Patterns[i].Event, err)
		}
		f.Patterns[i].re = re
	}
	return f.Patterns, nil
})

// A Cache is what is known of one start of a server. Zero is unknown.
type Cache struct {
	Tokens      int      `json:"tokens,omitempty"`       // KV cache, in tokens
	Blocks      int      `json:"blocks,omitempty"`       // KV cache, in blocks
	BlockSize   int      `json:"block_size,omitempty"`   // tokens a block
	Length      int      `json:"length,omitempty"`       // longest request, max-model-len
	Concurrency float64  `json:"concurrency,omitempty"`  // requests of that length, as the server says
	MemoryGiB   float64  `json:"memory_gib,omitempty"`   // of the KV cache
	WeightsGiB  float64  `json:"weights_gib,omitempty"`  // of the model
	NeedGiB     float64  `json:"need_gib,omitempty"`     // for one request of Length, when the server refused
	LongestFits int      `json:"longest_fits,omitempty"` // longest request that would fit, as the server estimates
	Preemptions int      `json:"preemptions,omitempty"`  // seen
	Usage       float64  `json:"usage,omitempty"`        // highest, percent
	Waste       float64  `json:"waste,omitempty"`        // of padding layers at most, percent
	MaxSeqs     int      `json:"max_seqs,omitempty"`     // --max-num-seqs
	Refused     bool     `json:"refused,omitempty"`      // the server did not start for lack of KV cache
	Failed      bool     `json:"failed,omitempty"`       // the server did not start for another reason
	Notes       []string `json:"notes,omitempty"`
}

type event struct {
	at     int
	name   string
	values map[string]string
}

// Log reads the start-up log of a server: one Cache a start. Several entries
// on one line, cut entries and wrapped lines are read as far as they go.
func Log(text string) ([]Cache, error) {
	ps, err := patterns()
	if err != nil {
		return nil, err
	}
	var events []event
	flat := strings.NewReplacer("\r", "", "\n", "").Replace(text)
	for _, p := range ps {
		found := matches(p, text)
		if p.Wraps && len(found) == 0 {
			found = matches(p, flat)
		}
		events = append(events, found...)
	}
	sort.SliceStable(events, func(i, j int) bool { return events[i].at < events[j].at })
	var out []Cache
	var b builder
	for _, e := range events {
		if b.starts(e) {
			out = append(out, b.cache())
			b = builder{}
		}
		b.add(e)
	}
	if b.any {
		out = append(out, b.cache())
	}
	return out, nil
}

func matches(p pattern, text string) []event {
	var out []event
	for _, m := range p.re.FindAllStringSubmatchIndex(text, -1) {
		e := event{at: m[0], name: p.Event, values: map[string]string{}}
		for i, name := range p.re.SubexpNames() {
			if name != "" && m[2*i] >= 0 {
				e.values[name] = text[m[2*i]:m[2*i+1]]
			}
		}
		out = append(out, e)
	}
	return out
}
