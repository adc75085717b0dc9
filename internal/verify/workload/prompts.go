package workload

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
)

// Prompts says which prompts a workload sends. They are made from the seed, so
// that the same workload asks the same on every machine.
type Prompts struct {
	Style string `yaml:"style" json:"style"`
	Count int    `yaml:"count" json:"count"`
	Min   int    `yaml:"min" json:"min"` // words
	Max   int    `yaml:"max" json:"max"`
	Seed  uint64 `yaml:"seed" json:"seed"`
}

// The styles of prompts.
const (
	drawn   = "drawn"   // the sentences of templates, in the order in which vLLM's test draws its own
	mixed   = "mixed"   // an instruction and words on one of many subjects
	shared  = "shared"  // the same first words, then words of its own
	long    = "long"    // many words
	outlier = "outlier" // digits, signs, one word for ever, other scripts
)

func knownStyle(s string) bool {
	return slices.Contains([]string{drawn, mixed, shared, long, outlier}, s)
}

// templates stand for the fifteen of vLLM's test: as many of each kind, about as
// long, in words of our own.
var templates = []string{
	"Question: Which metal expands least when it gets warm?\nAnswer: The metal that expands least is",
	"Q: Why does bread rise?\nA: Bread rises because the yeast in it",
	"User: How does a pendulum clock keep time?\nAssistant: A pendulum clock is",
	"Long before the first ships reached this coast, there was",
	"The watchmaker locked her workshop that evening and noticed",
	"On the last day of the harvest the whole village",
	"To sort a list of numbers without a second list, start by",
	"The parser reads one line after the other and",
	"These are the steps that make a slow program faster:",
	"The invention of the printing press was a change that",
	"Earthquakes are recorded with several instruments, among them",
	"A grown oak tree drops about ten thousand acorns which",
	"We were talking about moving to another town because",
	"Last week my neighbour brought home a dog and",
	"The part of winter that I like most is",
}

// draw is which template each prompt is: Python's random.seed(42), then for each
// prompt a choice of fifteen and a number of words from 10 to 50. The test draws
// that number and, up to 50 words, does not use it: prompts stay as short as the
// templates, and some are sent twice.
var draw = []int{10, 0, 3, 2, 10, 1, 6, 0, 3, 8, 0, 3, 6, 7, 4, 12, 11, 5, 2, 12, 1, 6, 5, 9, 12, 11, 8, 14, 1, 4, 9, 9}

// openings are the instructions of mixed prompts.
var openings = []string{
	"Explain to a beginner how", "Write the first lines of a story in which", "List three reasons why",
	"Summarise what happens when", "Compare two ways in which", "Give a short recipe for days when",
	"Describe the morning on which", "Translate into plain words:", "Continue this report:",
	"Answer in one sentence whether", "Solve step by step: a shop in which", "Write a polite letter about how",
	"Draft a warning for people near whom", "Name a law of physics by which", "Sketch a program that counts how",
}

var words = strings.Fields("river stone market engine garden winter copper signal window harbour " +
	"bright narrow ancient patient hollow silver broken gentle distant quiet carries follows measures " +
	"opens repairs remembers crosses gathers lifts returns the a every some under over beside between " +
	"until because while after seven twelve forty light water paper iron salt wheel bridge letter map " +
	"clock orchard valley tower ship train cloud river field lantern pencil ladder mirror basket rope " +
	"slowly twice rarely almost never again north south early late doctor farmer teacher pilot child " +
	"question answer number balance weather price order batch token column shadow border pattern noise")

// All yields the prompts one by one, so that ten thousand need no memory.
func (p Prompts) All() iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		for i := range p.Count {
			if !yield(i, p.At(i)) {
				return
			}
		}
	}
}

// At is the i-th prompt.
func (p Prompts) At(i int) string {
	r := rand.New(rand.NewPCG(p.Seed, uint64(i)+1)) //nolint:gosec // reproducible, not secret
	n := p.Min + r.IntN(max(p.Max-p.Min, 0)+1)
	switch p.Style {
	case drawn:
		if i < len(draw) {
			return templates[draw[i]]
		}
	case shared:
		// Sixteen words are 16 or more tokens with every tokenizer seen.
		head := rand.New(rand.NewPCG(p.Seed, 0)) //nolint:gosec // as above
		return sentence(head, max(p.Min, 16)) + fmt.Sprintf(" (%d) ", i) + sentence(r, max(4, (p.Max-p.Min)/2))
	case outlier:
		return strange(r, i, n)
	case long:
		return fmt.Sprintf("Document %d. %s", i, sentence(r, n))
	}
	return openings[i%len(openings)] + " " + sentence(r, n)
}

func sentence(r *rand.Rand, n int) string {
	out := make([]string, n)
	for i := range out {
		out[i] = words[r.IntN(len(words))]
	}
	return strings.Join(out, " ")
}

// strange is text whose activations lie far from those of prose.
func strange(r *rand.Rand, i, n int) string {
	switch i % 4 {
	case 0:
		return strings.Repeat("0", 4*n)
	case 1:
		return strings.Repeat(words[r.IntN(len(words))]+" ", n)
	case 2:
		return strings.Repeat("}{][)(;;##@@", n/2+1)
	}
	return strings.Repeat("\u6781\u7aef\u20ac\u00e9\u0416", n/2+1)
}

// Fillers are the prompts that only keep the others company in a run.
func (w Workload) Fillers(a Arrangement) Prompts {
	p := Prompts{Style: a.Fillers, Count: a.Extra, Min: 10, Max: 40, Seed: w.Prompts.Seed + 1000003}
	if a.Fillers == long {
		p.Min, p.Max = 90, 110
	}
	return p
}

// Writers are other prompts with the prefix of w's: they fill the cache.
func (w Workload) Writers(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = w.Prompts.At(w.Prompts.Count + i)
	}
	return out
}
