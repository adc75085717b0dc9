package drive

import (
	"context"
	"net/http"
	"time"

	"github.com/invar-ops/invar/internal/metrics"
	"github.com/invar-ops/invar/internal/openai"
	"github.com/invar-ops/invar/internal/verify/dialect"
	"github.com/invar-ops/invar/internal/verify/journal"
)

// Metrics fetches the metrics of a server; ok is false where it offers none.
func Metrics(ctx context.Context, c *openai.Client) (s metrics.Snapshot, ok bool, err error) {
	b, err := c.Get(ctx, "/metrics")
	if openai.IsStatus(err, http.StatusNotFound) {
		return s, false, nil
	}
	if err != nil {
		return s, false, err
	}
	s, err = metrics.Parse(b)
	return s, err == nil, nil //nolint:nilerr // text that is no metrics is none
}

// Totals reads the counters that a run is judged by.
func Totals(e dialect.Engine, s metrics.Snapshot) journal.Observed {
	sum := func(word string) float64 {
		m, _ := s.Sum("", e.Metrics[word]...)
		return m[""]
	}
	o := journal.Observed{
		Metrics:   true,
		Generated: sum(dialect.Generated), Prompted: sum(dialect.Prompted), Finished: sum(dialect.Finished),
		Preemptions: sum(dialect.Preemptions), Hits: sum(dialect.Hits),
	}
	o.Engines, _ = s.Sum(e.Label, e.Metrics[dialect.Finished]...)
	if h, ok := s.Histogram(e.Metrics[dialect.Steps]...); ok {
		o.HasSteps, o.Steps, o.StepTokens = true, h.Count, h.Sum
		o.Over256, o.Over512 = h.Above[256], h.Above[512]
	}
	return o
}

func (d *Driver) snapshot(ctx context.Context, c *openai.Client) (journal.Observed, error) {
	s, ok, err := Metrics(ctx, c)
	if err != nil || !ok {
		return journal.Observed{}, err
	}
	return Totals(d.Engine, s), nil
}

// ports are the counters of finished requests of all ranks that have URLs of
// their own, where r was addressed to one. A rank without metrics has none; the
// series of one that has answered nothing does not exist yet.
func (d *Driver) ports(ctx context.Context, r *journal.Run) (map[string]float64, error) {
	if r.Rank == journal.NoRank || len(d.Ranks) == 0 {
		return nil, nil
	}
	out := map[string]float64{}
	for _, c := range d.Ranks {
		s, ok, err := Metrics(ctx, c)
		if err != nil {
			return nil, err
		}
		if by, _ := s.Sum("", d.Engine.Metrics[dialect.Finished]...); ok {
			out[c.Base] = by[""]
		}
	}
	return out, nil
}

// observePorts keeps by how much the counters of the ranks have risen.
func (d *Driver) observePorts(ctx context.Context, r *journal.Run, before map[string]float64) error {
	after, err := d.ports(ctx, r)
	if err != nil || after == nil {
		return err
	}
	r.Observed.Port, r.Observed.Ports = d.clientOf(r.Rank).Base, map[string]float64{}
	for url, n := range after {
		r.Observed.Ports[url] = n - before[url]
	}
	return nil
}

// settle is how long counters may lag behind the answers. Engines count a step
// after its tokens went out, mostly at once: the first looks follow closely.
const (
	settle     = 2 * time.Second
	settleFrom = 2 * time.Millisecond
	settleStep = 50 * time.Millisecond
)

// observe reads the metrics again when they have caught up and keeps the
// differences.
func (d *Driver) observe(ctx context.Context, rn *running, before journal.Observed) error {
	o := &rn.r.Observed
	if !before.Metrics {
		return nil
	}
	step := settleFrom
	for waited := time.Duration(0); ; waited, step = waited+step, min(2*step, settleStep) {
		after, err := d.snapshot(ctx, rn.client)
		if err != nil {
			return err
		}
		minus(o, after, before)
		if caughtUp(*o) || waited >= settle || !sleep(ctx, step) {
			return nil
		}
	}
}

func caughtUp(o journal.Observed) bool {
	return o.Finished >= float64(o.Sent) && o.Generated >= float64(o.Completion) &&
		(!o.HasSteps || o.StepTokens >= float64(o.Completion))
}

func minus(o *journal.Observed, a, b journal.Observed) {
	o.Metrics, o.HasSteps = true, a.HasSteps
	o.Steps, o.StepTokens = a.Steps-b.Steps, a.StepTokens-b.StepTokens
	o.Over256, o.Over512 = a.Over256-b.Over256, a.Over512-b.Over512
	o.Generated, o.Prompted, o.Finished = a.Generated-b.Generated, a.Prompted-b.Prompted, a.Finished-b.Finished
	o.Preemptions, o.Hits = a.Preemptions-b.Preemptions, a.Hits-b.Hits
	o.Engines = map[string]float64{}
	for k, v := range a.Engines {
		o.Engines[k] = v - b.Engines[k]
	}
}

// watchEvery is how often the gauge of running requests is read on servers that
// have no histogram of steps.
const watchEvery = 100 * time.Millisecond

// watch keeps the largest number of running requests until the function that it
// returns is called. Servers that count their steps are not bothered.
func (rn *running) watch(ctx context.Context, before journal.Observed) (stop func()) {
	if !before.Metrics || before.HasSteps || len(rn.d.Engine.Metrics[dialect.Running]) == 0 {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	most := 0.0
	go func() {
		defer close(done)
		for sleep(ctx, watchEvery) {
			s, ok, err := Metrics(ctx, rn.client)
			if err != nil || !ok {
				return
			}
			by, _ := s.Sum(rn.d.Engine.Label, rn.d.Engine.Metrics[dialect.Running]...)
			for _, n := range by {
				most = max(most, n)
			}
		}
	}()
	return func() {
		cancel()
		<-done
		rn.r.Observed.MaxRunning = most
	}
}
