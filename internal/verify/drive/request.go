package drive

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"time"

	"github.com/invar-ops/invar/internal/openai"
	"github.com/invar-ops/invar/internal/verify/answer"
	"github.com/invar-ops/invar/internal/verify/dialect"
	"github.com/invar-ops/invar/internal/verify/journal"
	"github.com/invar-ops/invar/internal/verify/workload"
)

// one sends prompt i (a filler and a writer have none) and keeps its answer. each
// is called for every event that brought tokens.
func (rn *running) one(ctx context.Context, i int, prompt string, each func()) error {
	f, h := rn.fields(prompt, i)
	var at []float64
	var c openai.Completion
	var err error
	if rn.a.Stream && rn.w.Sampling.PromptLogprobs == 0 {
		sent := time.Since(rn.start)
		c, err = rn.client.Stream(ctx, f, h, 1, func(d time.Duration) {
			at = append(at, float64((sent+d).Microseconds())/1000)
			if each != nil {
				each()
			}
		})
	} else {
		c, err = rn.client.Complete(ctx, f, h, 1)
	}
	if err != nil {
		return rn.failed(ctx, i, err)
	}
	rn.count(c, 1)
	return rn.keep(i, c.Choices[0], at)
}

// list sends the prompts, and the fillers after them, in as few requests as
// lists may be long.
func (rn *running) list(ctx context.Context) error {
	var at []int
	var prompts []string
	flush := func() error {
		err := rn.oneList(ctx, at, prompts)
		at, prompts = at[:0], prompts[:0]
		return err
	}
	for i, p := range rn.w.Mixed(rn.a) {
		at, prompts = append(at, i), append(prompts, p)
		if len(at) == workload.ListSize {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	if len(at) == 0 {
		return nil
	}
	return flush()
}

// oneList sends prompts as one request; at are their indices.
func (rn *running) oneList(ctx context.Context, at []int, prompts []string) error {
	f, h := rn.fields(prompts, workload.Filler)
	c, err := rn.client.Complete(ctx, f, h, len(prompts))
	if err != nil {
		return rn.failed(ctx, at[0], err)
	}
	rn.count(c, len(prompts))
	for n, ch := range c.Choices {
		if err := rn.keep(at[n], ch, nil); err != nil {
			return err
		}
	}
	return nil
}

// fields is the body and the header of a request.
func (rn *running) fields(prompt any, i int) (openai.Fields, http.Header) {
	s, e := rn.w.Sampling, rn.d.Engine
	f := openai.Fields{
		"model": rn.d.Model, "prompt": prompt, "max_tokens": s.MaxTokens,
		"temperature": s.Temperature, "top_p": s.TopP, "logprobs": s.Logprobs,
	}
	maps.Copy(f, e.Fields)
	e.Set(f, dialect.Seed, s.Seed)
	e.Set(f, dialect.Salt, rn.salt(i))
	if s.IgnoreEOS {
		e.Set(f, dialect.IgnoreEOS, true)
	}
	if s.PromptLogprobs > 0 {
		e.Set(f, dialect.PromptLogprobs, s.PromptLogprobs)
	}
	h := http.Header{}
	if rn.r.Rank != journal.NoRank && len(rn.d.Ranks) == 0 {
		e.Address(f, h, rn.r.Rank)
	}
	return f, h
}

// salt is the salt of prompt i. Fillers of a run share one of their own.
func (rn *running) salt(i int) string {
	base, run := Salts(rn.d.Nonce, rn.r.Key)
	if i == workload.Filler && rn.a.Mode != workload.List {
		run += "-filler"
	}
	return rn.a.Salt(base, run, strconv.Itoa(i))
}

// Salts are the parts of the salts of a run: what all runs of the workload on
// this start of the server share, and what is the run's own.
func Salts(nonce string, k journal.Key) (base, run string) {
	return fmt.Sprintf("invar-%s-%s-%d-%s-%d", nonce, k.Role, k.Lifetime, k.Workload, k.Rank), fmt.Sprintf("%s-%d", k.Run, k.Repeat)
}

// failed notes a request without an answer. What ends the verification is
// returned: a server that is gone, one that refuses, one that is too slow.
func (rn *running) failed(ctx context.Context, i int, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if s, ok := errors.AsType[*openai.StatusError](err); ok && s.Code < 500 {
		return err
	}
	if _, ok := errors.AsType[*openai.TimeoutError](err); ok {
		return err
	}
	rn.mu.Lock()
	rn.r.Fail(fmt.Sprintf("%s, request %d: %v", rn.r.Key, i, err))
	rn.mu.Unlock()
	if _, ok := errors.AsType[*openai.FormatError](err); ok {
		return nil
	}
	// The connection broke, or the server said 500: is it still there?
	hctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if _, herr := rn.client.Get(hctx, "/health"); herr != nil && !openai.IsStatus(herr, http.StatusNotFound) {
		return err
	}
	return nil
}

// count adds an answer to what the metrics will be compared with.
func (rn *running) count(c openai.Completion, prompts int) {
	rn.mu.Lock()
	defer rn.mu.Unlock()
	o := &rn.r.Observed
	o.Sent += prompts
	for _, ch := range c.Choices {
		switch {
		case len(ch.TokenIDs) > 0:
			o.Completion += len(ch.TokenIDs)
		case ch.Logprobs != nil:
			o.Completion += len(ch.Logprobs.Values)
		}
	}
	if c.Usage != nil {
		o.Prompt += c.Usage.Prompt
	}
}

// keep checks an answer and writes it to the journal.
func (rn *running) keep(i int, ch openai.Choice, at []float64) error {
	s := rn.w.Sampling
	_, asked := rn.d.Engine.Names[dialect.PromptLogprobs]
	a, err := answer.From(ch, s.Logprobs > 0, asked && s.PromptLogprobs > 0)
	rn.mu.Lock()
	defer rn.mu.Unlock()
	if err != nil {
		rn.r.Fail(fmt.Sprintf("%s, request %d: %v", rn.r.Key, i, err))
		return nil
	}
	if i < 0 {
		return nil
	}
	rn.r.Note(a)
	return rn.d.Journal.Put(rn.r.Key, i, a, max(s.Logprobs, s.PromptLogprobs), at)
}
