package drive

import (
	"context"
	"sync"
	"time"
)

// A group runs requests with a bound and ends at the first error.
type group struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	slots  chan struct{}
	wg     sync.WaitGroup
	once   sync.Once
	err    error
}

func newGroup(ctx context.Context, limit int) *group {
	g := &group{}
	g.ctx, g.cancel = context.WithCancelCause(ctx)
	if limit > 0 {
		g.slots = make(chan struct{}, limit)
	}
	return g
}

// run starts f when a slot is free; false means that the group has ended.
func (g *group) run(f func(context.Context) error) bool {
	if g.slots != nil {
		select {
		case g.slots <- struct{}{}:
		case <-g.ctx.Done():
			return false
		}
	}
	if g.ctx.Err() != nil {
		return false
	}
	g.wg.Go(func() {
		if err := f(g.ctx); err != nil {
			g.once.Do(func() { g.err = err; g.cancel(err) })
		}
		if g.slots != nil {
			<-g.slots
		}
	})
	return true
}

func (g *group) wait() error {
	g.wg.Wait()
	g.cancel(nil)
	return g.err
}

func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
