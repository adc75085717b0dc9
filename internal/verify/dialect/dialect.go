// Package dialect holds, as data, how engines that speak the OpenAI API differ:
// names of request fields, of the header that picks a rank, and of metrics.
package dialect

import (
	"embed"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"

	"github.com/invar-ops/invar/internal/data"
	"github.com/invar-ops/invar/internal/metrics"
	"github.com/invar-ops/invar/internal/openai"
)

//go:embed all:rules
var rules embed.FS

// An Engine is one dialect.
type Engine struct {
	Name    string            `yaml:"name"`
	Source  string            `yaml:"source"`
	Prefix  string            `yaml:"metrics_prefix"` // of its metrics: how it is recognised
	Fields  map[string]any    `yaml:"fields"`         // sent with every request
	Names   map[string]string `yaml:"names"`          // our word -> its field; a word that is missing cannot be asked for
	Rank    Rank              `yaml:"rank"`
	About   About             `yaml:"about"`
	Label   string            `yaml:"engine_label"`
	Metrics map[string]Names  `yaml:"metrics"` // our word -> its names, newest first
}

// Names of one metric in different releases.
type Names []string

// Rank says how a data-parallel rank is addressed: by a header, or by a field
// whose name changed between releases, so that all of its names are sent.
type Rank struct {
	Header string   `yaml:"header"`
	Fields []string `yaml:"fields"`
}

// About says where an engine without /version tells its own.
type About struct {
	Paths []string `yaml:"paths"` // newest first
	Field string   `yaml:"field"` // of the JSON object there
}

// Words for metrics.
const (
	Steps       = "step_tokens" // histogram: tokens in each step
	Generated   = "generated"
	Prompted    = "prompted"
	Finished    = "finished"
	Preemptions = "preemptions"
	Queries     = "cache_queries"
	Hits        = "cache_hits"
	Running     = "running"
	Config      = "cache_config"
)

var words = []string{Steps, Generated, Prompted, Finished, Preemptions, Queries, Hits, Running, Config}

// Words for request fields.
const (
	Salt           = "salt"
	PromptLogprobs = "prompt_logprobs"
	IgnoreEOS      = "ignore_eos"
	Seed           = "seed"
)

var load = sync.OnceValues(func() ([]Engine, error) {
	const name = "rules/engines.yaml"
	b, err := rules.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var f struct {
		Engines []Engine `yaml:"engines"`
	}
	if err := data.Decode(name, b, &f); err != nil {
		return nil, err
	}
	for _, e := range f.Engines {
		for w := range e.Metrics {
			if !slices.Contains(words, w) {
				return nil, fmt.Errorf("%s: engine %s: unknown metric %q", name, e.Name, w)
			}
		}
	}
	return f.Engines, nil
})

// All lists the engines; the last one fits every server and knows no metrics.
func All() ([]Engine, error) { return load() }

// Recognise is the engine whose metrics these are. Without metrics a server
// that tells its version at /version, as only vLLM does, is the first one.
func Recognise(s metrics.Snapshot, tellsVersion bool) (Engine, error) {
	all, err := load()
	if err != nil {
		return Engine{}, err
	}
	for _, e := range all {
		if e.Prefix != "" && s.HasPrefix(e.Prefix) {
			return e, nil
		}
	}
	if tellsVersion {
		return all[0], nil
	}
	return all[len(all)-1], nil
}

// Set puts a value under the engine's name for word, where it has one.
func (e Engine) Set(f openai.Fields, word string, value any) bool {
	name := e.Names[word]
	if name == "" {
		return false
	}
	f[name] = value
	return true
}

// Address directs a request to a rank.
func (e Engine) Address(f openai.Fields, h http.Header, rank int) {
	if e.Rank.Header != "" {
		h.Set(e.Rank.Header, strconv.Itoa(rank))
	}
	for _, name := range e.Rank.Fields {
		f[name] = rank
	}
}
