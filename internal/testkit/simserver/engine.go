package simserver

import (
	"sync"
	"time"
)

// A request is one prompt under way.
type request struct {
	prompt      []int
	salt        string
	maxTokens   int
	temperature float64
	seed        uint64
	wantPrompt  int // prompt_logprobs

	done     int    // tokens whose KV is there
	context  uint64 // hash of all tokens so far
	taint    uint64 // what other kernels left in its KV
	position int
	hit      int // tokens that the prefix cache gave
	redo     bool
	answered int // in order of arrival, for defects of the first requests

	out     chan token // closed at the end
	prompts []([]candidate)
}

// A token is one step of an answer.
type token struct {
	id      int
	at      int // position in the answer
	logprob float32
	top     []candidate
	short   bool // the top list lost its last entry
}

// An engine is one data-parallel replica with its scheduler.
type engine struct {
	cfg     Config
	rank    int
	mu      sync.Mutex
	active  bool
	waiting []*request
	running []*request
	cache   map[uint64]uint64 // block of a prefix under a salt -> taint
	served  int
	step    uint64
	stats   stats
}

// stats are the counters of one engine.
type stats struct {
	steps, tokens, over256, over512, prompt, generated, finished, preempted, queries, hits, running float64
}

const block = 16 // tokens of a page of KV

func newEngine(c Config, rank int) *engine {
	return &engine{cfg: c, rank: rank, cache: map[uint64]uint64{}}
}

func (e *engine) submit(r *request) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.served++
	r.answered = e.served
	e.waiting = append(e.waiting, r)
	if !e.active {
		e.active = true
		go e.loop()
	}
}

// loop makes steps until nothing is left to do.
func (e *engine) loop() {
	for {
		time.Sleep(e.cfg.Step)
		e.mu.Lock()
		if len(e.waiting)+len(e.running) == 0 {
			e.active = false
			e.mu.Unlock()
			return
		}
		e.admit()
		e.forward()
		e.mu.Unlock()
	}
}

// kvLimit is how many tokens fit with the defect Preempts.
const kvLimit = 600

func (e *engine) admit() {
	for len(e.waiting) > 0 && len(e.running) < e.cfg.MaxSeqs {
		r := e.waiting[0]
		e.waiting = e.waiting[1:]
		r.context = mix(e.cfg.Seed, 1)
		e.lookup(r)
		e.running = append(e.running, r)
	}
	if !e.cfg.has(Preempts) {
		return
	}
	for used := e.used(); used > kvLimit && len(e.running) > 1; used = e.used() {
		r := e.running[len(e.running)-1]
		e.running = e.running[:len(e.running)-1]
		e.stats.preempted++
		r.redo = true
		r.taint = mix(r.taint, 99)
		e.waiting = append([]*request{r}, e.waiting...)
		return
	}
}

func (e *engine) used() int {
	n := 0
	for _, r := range e.running {
		n += r.done + r.position
	}
	return n
}

// lookup takes from the prefix cache what it holds of r's prompt.
func (e *engine) lookup(r *request) {
	if r.redo {
		return // its KV is recomputed, which the taint stands for
	}
	e.stats.queries += float64(len(r.prompt))
	if e.cfg.NoCache {
		return
	}
	for at := block; at < len(r.prompt); at += block {
		t, ok := e.cache[prefixKey(e.cfg, r, at)]
		if !ok {
			return
		}
		r.taint, r.hit, r.done = t, at, at
		e.stats.hits += block
	}
}

func prefixKey(c Config, r *request, n int) uint64 {
	h := uint64(n)
	if !c.has(DeafToSalt) {
		for _, b := range []byte(r.salt) {
			h = mix(h, uint64(b))
		}
	}
	for _, t := range r.prompt[:n] {
		h = mix(h, uint64(t)) //nolint:gosec // an id
	}
	return h
}

// A slice is what one request does in a step.
type slice struct {
	r *request
	n int // query tokens
}

// forward makes one step.
func (e *engine) forward() {
	e.step++
	var plan []slice
	budget := e.cfg.MaxTokens
	for _, r := range e.running {
		n := 1
		if r.done < len(r.prompt) {
			n = len(r.prompt) - r.done
		}
		if n = min(n, budget); n > 0 {
			budget -= n
			plan = append(plan, slice{r, n})
		}
	}
	out := 0.0
	for row, s := range plan {
		s.r.taint = e.taint(plan, s, row)
		out += e.advance(plan, s, row)
	}
	if out > 0 {
		e.stats.steps++
		e.stats.tokens += out
		e.stats.over256 += when(out > 256)
		e.stats.over512 += when(out > 512)
	}
	keep := e.running[:0]
	for _, r := range e.running {
		if r.position < r.maxTokens {
			keep = append(keep, r)
		} else {
			e.stats.finished++
			close(r.out)
		}
	}
	e.running = keep
}

func when(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// advance does a request's part of a step and is what the step counter gets for it.
func (e *engine) advance(plan []slice, s slice, row int) (counted float64) {
	r := s.r
	if r.done < len(r.prompt) {
		r.done += s.n
		e.store(r)
		if r.done < len(r.prompt) {
			return 0
		}
		counted += float64(len(r.prompt))
		e.stats.prompt += float64(len(r.prompt))
		e.scorePrompt(r)
	}
	top := e.cfg.next(r.context, r.taint)
	if e.cfg.has(TieOrder) && row%2 == 1 && top[0].logprob == top[1].logprob {
		top[0], top[1] = top[1], top[0]
	}
	i := choose(top, r.temperature, r.seed, uint64(r.position)) //nolint:gosec // a position
	r.context = mix(r.context, uint64(top[i].id))               //nolint:gosec // an id
	r.position++
	e.stats.generated++
	r.out <- token{top[i].id, r.position - 1, top[i].logprob, top, e.cfg.has(DroppedTop) && len(plan) > 1}
	return counted + 1
}

// scorePrompt hashes the prompt into the context and keeps what the model says
// at each position.
func (e *engine) scorePrompt(r *request) {
	h := mix(e.cfg.Seed, 1)
	if e.cfg.has(Canned) {
		r.context = h
		return
	}
	taint := r.taint
	if e.cfg.has(StalePrompt) && r.hit > 0 {
		taint = mix(taint, 5)
	}
	for i, t := range r.prompt {
		if r.wantPrompt > 0 && i > 0 {
			r.prompts = append(r.prompts, e.cfg.next(h, taint))
		}
		h = mix(h, uint64(t)) //nolint:gosec // an id
	}
	r.context = h
}

// store writes whole pages of the prompt into the prefix cache.
func (e *engine) store(r *request) {
	if e.cfg.NoCache {
		return
	}
	for at := block; at <= r.done && at < len(r.prompt); at += block {
		k := prefixKey(e.cfg, r, at)
		if _, ok := e.cache[k]; !ok {
			e.cache[k] = r.taint
		}
	}
}
