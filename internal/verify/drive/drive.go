// Package drive sends the runs of a workload to a server and writes the answers
// to the journal. It judges nothing and asks nothing twice.
package drive

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/invar-ops/invar/internal/openai"
	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/verify/dialect"
	"github.com/invar-ops/invar/internal/verify/journal"
	"github.com/invar-ops/invar/internal/verify/workload"
)

// A Driver speaks to one server.
type Driver struct {
	Client  *openai.Client
	Ranks   []*openai.Client // one a data-parallel rank where ranks have ports of their own
	Engine  dialect.Engine
	Model   string
	Limit   int    // requests at once; 0 is no limit
	Nonce   string // makes the salts of this verification its own
	Journal *journal.Journal
}

// Errors that end a verification before its end.
var (
	ErrDied = errors.New("the server died")
	ErrSlow = errors.New("the server does not answer in time")
)

// Prime sends the first prompts of w alone and at once and forgets the answers:
// the first requests after a start may differ for reasons that are not the batch.
// They are kept in the journal under the workload's name with run "priming".
func (d *Driver) Prime(ctx context.Context, w workload.Workload, role string, lifetime int) error {
	w.Prompts.Count = min(w.Prompts.Count, 4)
	a := workload.Arrangement{Name: Priming, Mode: workload.Alone, Repeat: 1, Cache: workload.Apart}
	_, err := d.Run(ctx, w, a, journal.Key{Role: role, Lifetime: lifetime, Workload: w.Name, Rank: journal.NoRank, Run: Priming})
	return err
}

// Priming is the name of the run that is not compared.
const Priming = "priming"

// Run makes one run. The error is ErrDied, ErrSlow, a refusal by the server or
// the end of ctx; answers that came before it are in the journal.
func (d *Driver) Run(ctx context.Context, w workload.Workload, a workload.Arrangement, k journal.Key) (*journal.Run, error) {
	r, done := d.Journal.Start(k)
	if done {
		return r, nil
	}
	r.Arrangement = a
	r.Refs = make([]journal.Ref, w.Prompts.Count)
	rn := &running{d: d, w: w, a: a, r: r, client: d.clientOf(k.Rank)}
	if err := rn.fill(ctx); err != nil {
		return r, rn.named(ctx, err)
	}
	before, err := d.snapshot(ctx, rn.client)
	if err != nil {
		return r, rn.named(ctx, err)
	}
	ports, err := d.ports(ctx, r)
	if err != nil {
		return r, rn.named(ctx, err)
	}
	waits := rn.client.Waits()
	rn.start = time.Now()
	unwatch := rn.watch(ctx, before)
	err = rn.send(ctx)
	unwatch()
	r.Elapsed = time.Since(rn.start)
	r.Observed.Waits = rn.client.Waits() - waits
	if err != nil {
		return r, rn.named(ctx, err)
	}
	if err := d.observe(ctx, rn, before); err != nil {
		return r, rn.named(ctx, err)
	}
	if err := d.observePorts(ctx, r, ports); err != nil {
		return r, rn.named(ctx, err)
	}
	r.Complete, r.Done = true, time.Now().UTC()
	return r, d.Journal.End(r)
}

func (d *Driver) clientOf(rank int) *openai.Client {
	if rank != journal.NoRank && rank < len(d.Ranks) {
		return d.Ranks[rank]
	}
	return d.Client
}

// A running is a run under way.
type running struct {
	d      *Driver
	w      workload.Workload
	a      workload.Arrangement
	r      *journal.Run
	client *openai.Client
	start  time.Time
	mu     sync.Mutex // guards r and fatal
}

// send sends the prompts in the arrangement's mode.
func (rn *running) send(ctx context.Context) error {
	switch rn.a.Mode {
	case workload.Alone:
		for i, p := range rn.w.Prompts.All() {
			if err := rn.one(ctx, i, p, nil); err != nil {
				return err
			}
		}
		return nil
	case workload.List:
		return rn.list(ctx)
	case workload.Arrival:
		return rn.arrival(ctx)
	}
	return rn.together(ctx)
}

// together sends everything at once, or Gap apart.
func (rn *running) together(ctx context.Context) error {
	g := newGroup(ctx, rn.d.Limit)
	gap := time.Duration(0)
	if rn.a.Mode == workload.Staggered {
		gap = rn.a.Gap
	}
	n := 0
	for i, p := range rn.w.Mixed(rn.a) {
		if n > 0 && gap > 0 && !sleep(g.ctx, gap) {
			break
		}
		n++
		if !g.run(func(ctx context.Context) error { return rn.one(ctx, i, p, nil) }) {
			break
		}
	}
	return g.wait()
}

// arrival starts the prompts and sends the fillers when each prompt has its
// second token, so that the prefills meet decodes.
func (rn *running) arrival(ctx context.Context) error {
	g := newGroup(ctx, rn.d.Limit)
	var decoding sync.WaitGroup
	decoding.Add(rn.w.Prompts.Count)
	for i, p := range rn.w.Prompts.All() {
		seen := 0
		var once sync.Once
		ok := g.run(func(ctx context.Context) error {
			defer once.Do(decoding.Done)
			return rn.one(ctx, i, p, func() {
				if seen++; seen == 2 {
					once.Do(decoding.Done)
				}
			})
		})
		if !ok {
			once.Do(decoding.Done)
		}
	}
	decoding.Wait()
	for _, p := range rn.w.Fillers(rn.a).All() {
		g.run(func(ctx context.Context) error { return rn.one(ctx, workload.Filler, p, nil) })
	}
	return g.wait()
}

// fill writes the prefix into the cache where the arrangement wants it written.
func (rn *running) fill(ctx context.Context) error {
	if rn.a.Cache != workload.FillAlone && rn.a.Cache != workload.FillAtOnce {
		return nil
	}
	limit := 1
	if rn.a.Cache == workload.FillAtOnce {
		limit = rn.d.Limit
	}
	g := newGroup(ctx, limit)
	for _, p := range rn.w.Writers(4) {
		g.run(func(ctx context.Context) error { return rn.one(ctx, writer, p, nil) })
	}
	if rn.a.Cache == workload.FillAtOnce {
		for _, p := range rn.w.Fillers(rn.a).All() {
			g.run(func(ctx context.Context) error { return rn.one(ctx, workload.Filler, p, nil) })
		}
	}
	err := g.wait()
	rn.r.Observed.Sent, rn.r.Observed.Completion, rn.r.Observed.Prompt = 0, 0, 0 // metrics are read after this
	return err
}

// writer is the index of a prompt that only fills the cache: its salt is the run's.
const writer = -2

// named gives an error its place, and looks whether the server is still there.
func (rn *running) named(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if s, ok := errors.AsType[*openai.StatusError](err); ok && s.Code < 500 {
		return refusal(s)
	}
	if _, ok := errors.AsType[*openai.TimeoutError](err); ok {
		return fmt.Errorf("%w: %s: %w", ErrSlow, rn.r.Key, err)
	}
	if _, ok := errors.AsType[*report.Problem](err); ok {
		return err
	}
	return fmt.Errorf("%w in %s: %w", ErrDied, rn.r.Key, err)
}

// refusal says what to do about a status that no waiting cures.
func refusal(s *openai.StatusError) error {
	p := report.Problemf(report.Failed, "the server refuses the request: %w", s)
	switch s.Code {
	case http.StatusUnauthorized, http.StatusForbidden:
		return p.WithHint("set INVAR_API_KEY, or pass --api-key-file")
	case http.StatusNotFound:
		return p.WithHint("is it the base URL of an OpenAI-compatible server with /v1/completions, and is --model right")
	}
	return p.WithHint("the workload asks for 5 logprobs and the fields in the plan: invar verify server --dry-run --json")
}
