// Package simserver is a simulated inference server with the completions API of
// vLLM: continuous batching, chunked prefill, a prefix cache, data-parallel
// engines, metrics, and defects that can be switched on. Its "model" is a hash
// of the context, so that answers are the same on every machine. Only tests
// use it.
package simserver

import (
	"slices"
	"time"
)

// A Defect is one way in which a server goes wrong.
type Defect string

// Numerical defects, after real ones.
const (
	BatchOfOne  Defect = "batch-of-one"  // one row takes another kernel than several
	RMSNorm256  Defect = "rmsnorm-256"   // from 256 tokens in a step another reduction order
	RankOrder   Defect = "rank-order"    // sums depend on the data-parallel rank
	FA3Tile     Defect = "fa3-tile"      // a decode beside a query of 10 or more tokens
	Cascade     Defect = "cascade"       // all requests of a step share their first 16 tokens
	FP8Scale    Defect = "fp8-scale"     // one scale over the contents of the whole step
	StalePrompt Defect = "stale-prompt"  // prompt_logprobs of a request that hit the cache
	FirstAfter  Defect = "first-request" // the first two requests after the start
	Autotune    Defect = "autotune"      // another kernel in every lifetime
	TieOrder    Defect = "tie-order"     // among exactly equal logprobs the row decides
	DroppedTop  Defect = "dropped-top"   // a top list one short when others share the step
	FlakyRun    Defect = "flaky"         // one step of many, at random
)

// Defects that make a verification say nothing.
const (
	Preempts    Defect = "preempts"     // KV memory for few requests; recomputation differs
	NaN         Defect = "nan"          // logprobs that are not numbers
	WrongIDs    Defect = "wrong-ids"    // one token id fewer than tokens
	Slow        Defect = "slow"         // answers after an hour
	Dies        Defect = "dies"         // after DieAfter requests
	FrozenStats Defect = "frozen-stats" // counters that never move
	HappyStats  Defect = "happy-stats"  // counters that claim shared steps
	NoStats     Defect = "no-stats"     // no /metrics
	OneByOne    Defect = "one-by-one"   // no two requests share a step
	Canned      Defect = "canned"       // one answer to everything
	Certain     Defect = "certain"      // the second candidate is out of reach
	NoLogprobs  Defect = "no-logprobs"  // logprobs left out
	DeafToRank  Defect = "deaf-to-rank" // the header of the rank is ignored
	DeafToSalt  Defect = "deaf-to-salt" // cache_salt is ignored
	NoIDs       Defect = "no-ids"       // return_token_ids is ignored
	BadIndex    Defect = "bad-index"    // a list request loses one choice
)

// Config says what to simulate; the zero value is a clean server.
type Config struct {
	Seed      uint64
	Engines   int           // data-parallel engines; 0 is 1
	MaxSeqs   int           // in one step of one engine; 0 is 256
	MaxTokens int           // in one step of one engine; 0 is 2048
	Step      time.Duration // how long a step takes; 0 is 1 ms
	NoCache   bool          // no prefix cache
	Key       string        // wanted as a bearer token
	Lifetime  uint64        // which start this is
	Busy      int           // so many requests get 429 and 503 first
	DieAfter  int           // with Dies
	Defects   []Defect
	SGLang    bool // SGLang's names of metrics and fields
}

func (c Config) has(d Defect) bool { return slices.Contains(c.Defects, d) }

func (c Config) filled() Config {
	set := func(v *int, to int) {
		if *v == 0 {
			*v = to
		}
	}
	set(&c.Engines, 1)
	set(&c.MaxSeqs, 256)
	set(&c.MaxTokens, 2048)
	set(&c.DieAfter, 60)
	if c.Step == 0 {
		c.Step = time.Millisecond
	}
	if c.has(OneByOne) {
		c.MaxSeqs = 1
	}
	return c
}
