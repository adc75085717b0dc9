package verify

import (
	"context"
	"errors"
	"fmt"

	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/verify/drive"
	"github.com/invar-ops/invar/internal/verify/journal"
	"github.com/invar-ops/invar/internal/verify/judge"
	"github.com/invar-ops/invar/internal/verify/workload"
)

// lifetime runs everything once on one start of the server.
func (v *verification) lifetime(ctx context.Context, c *connection, l int) error {
	if v.journal == nil {
		if err := v.open(c); err != nil {
			return err
		}
	}
	d := v.driver(c)
	for _, w := range v.workloads {
		if err := v.runs(ctx, d, w, journal.Subject, l, func(a workload.Arrangement) bool { return a.First }); err != nil {
			return err
		}
	}
	if err := d.Prime(ctx, v.workloads[0], journal.Subject, l); err != nil {
		return err
	}
	for _, w := range v.workloads {
		if err := v.workload(ctx, d, w, journal.Subject, l); err != nil {
			return err
		}
	}
	return nil
}

// workload makes the runs of w, and those of every rank where there are ranks.
func (v *verification) workload(ctx context.Context, d *drive.Driver, w workload.Workload, role string, l int) error {
	step := v.Progress.Start("verify", fmt.Sprintf("%s (%s), start %d", w.Name, w.About, l), int64(len(w.Runs)))
	err := v.runs(ctx, d, w, role, l, func(workload.Arrangement) bool {
		step.Add(1)
		return true
	})
	if err != nil {
		step.Fail(err)
		return err
	}
	step.Done("")
	return nil
}

// runs makes the runs of w that want says; one that was made is not made again.
func (v *verification) runs(ctx context.Context, d *drive.Driver, w workload.Workload, role string, l int, want func(workload.Arrangement) bool) error {
	for _, k := range v.ranks(w) {
		for _, a := range w.Runs {
			if !want(a) {
				continue
			}
			for n := range a.Repeat {
				_, err := d.Run(ctx, w, a, journal.Key{Role: role, Lifetime: l, Workload: w.Name, Rank: k, Run: a.Name, Repeat: n})
				if err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// ranks are the ranks to which w is addressed. Which rank answers what leaves
// the choice to the server is not known, so that nothing is the first of one.
func (v *verification) ranks(w workload.Workload) []int {
	out := []int{journal.NoRank}
	n := max(len(v.facts.Server.Ranks), len(v.RankURLs))
	if n < 2 || !w.Ranks {
		return out
	}
	if w.Fresh() {
		out = nil
	}
	for k := range n {
		out = append(out, k)
	}
	return out
}

// control sends the same until a difference shows: one is enough.
func (v *verification) control(ctx context.Context, c *connection) error {
	d := v.driver(c)
	if err := d.Prime(ctx, v.workloads[0], journal.Control, 1); err != nil {
		return err
	}
	for _, w := range v.workloads {
		if w.Fresh() {
			continue // tells nothing of batches
		}
		if err := v.workload(ctx, d, w, journal.Control, 1); err != nil {
			return fmt.Errorf("control: %w", err)
		}
		if judge.Varies(v.journal.Runs(), w.Name) {
			return nil
		}
	}
	return nil
}

func (v *verification) driver(c *connection) *drive.Driver {
	return &drive.Driver{
		Client: c.client, Ranks: c.ranks, Engine: c.engine, Model: c.model,
		Limit: v.Concurrency, Nonce: v.nonce, Journal: v.journal,
	}
}

// open opens the journal, which has to be about the same thing.
func (v *verification) open(c *connection) error {
	h := journal.Head{Format: 1, Server: c.client.Base, Model: c.model, Version: c.version, Digest: digest(v.workloads)}
	for _, w := range v.workloads {
		h.Workloads = append(h.Workloads, w.Name)
	}
	j, err := journal.Open(v.State, h)
	if f, ok := errors.AsType[*journal.ForeignError](err); ok {
		return report.Usagef("--state: %w", f).WithHint("give another folder, or the same server, preset and workloads")
	}
	if err != nil {
		return fmt.Errorf("state: %w", err)
	}
	v.journal = j
	v.facts.Server = judge.Server{
		URL: c.client.Base, Command: v.Launch, Model: c.model, Engine: c.engine.Name, Version: c.version,
		Ranks: c.labels, CacheOn: c.cache,
	}
	return nil
}
