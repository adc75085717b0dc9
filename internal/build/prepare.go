package build

import (
	"context"
	"fmt"
)

// Prepare begins, beside whatever else is made, what the step id needs: a
// later Make of id finds it done, under way, or failed with the same error.
// It stops when ctx ends or the Builder is closed. Nothing is begun when the
// store holds id itself.
func (b *Builder) Prepare(ctx context.Context, id string) error {
	s, ok := b.plan.Step(id)
	if !ok {
		return fmt.Errorf("the plan has no step %s", id)
	}
	if _, why, err := b.store.Lookup(ctx, s.Fingerprint); err != nil || why == "" {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	b.stops = append(b.stops, cancel)
	for _, n := range s.Needs {
		b.ahead.Go(func() { b.ensure(ctx, cancel, n) })
	}
	return nil
}

// counter says which function counts the steps of a stage, and how many of
// them were done before anybody asked.
type counter struct {
	tick func()
	done int
}

// count is called after each step that was run.
func (b *Builder) count(stage string) {
	b.mu.Lock()
	c := b.counters[stage]
	if c.tick == nil {
		c.done++
	}
	b.counters[stage] = c
	b.mu.Unlock()
	if c.tick != nil {
		c.tick()
	}
}

// countBy makes tick the function that counts the steps of stage, those that
// Prepare has done included.
func (b *Builder) countBy(stage string, tick func()) {
	b.mu.Lock()
	done := b.counters[stage].done
	b.counters[stage] = counter{tick: tick}
	b.mu.Unlock()
	for range done {
		tick()
	}
}
