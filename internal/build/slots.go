package build

import (
	"container/heap"
	"context"
	"sync"
)

// Slots bound how many processes run at a time. Of those that wait, the one
// with the lowest rank goes first: what the next stage may do already never
// holds up this one. A ready-made semaphore lets them in as they came.
type slots struct {
	mu      sync.Mutex
	free    int64
	waiting queue
}

// A waiter stands in the queue until enter is closed.
type waiter struct {
	rank   int
	weight int64 // slots that it takes
	enter  chan struct{}
	at     int // in the heap; -1 when it has left
}

func newSlots(n int) *slots { return &slots{free: int64(n)} }

// acquire takes weight slots, at most as many as there are.
func (s *slots) acquire(ctx context.Context, rank int, weight int64) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	w := &waiter{rank: rank, weight: weight, enter: make(chan struct{})}
	s.mu.Lock()
	heap.Push(&s.waiting, w)
	s.admit()
	s.mu.Unlock()
	select {
	case <-w.enter:
		return nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.at < 0 { // it was let in meanwhile
		s.free += weight
	} else {
		heap.Remove(&s.waiting, w.at)
	}
	s.admit()
	return context.Cause(ctx)
}

func (s *slots) release(weight int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free += weight
	s.admit()
}

// admit lets in who comes first while there is room. One that needs more slots
// than are free holds back those behind it, or it would never be let in.
func (s *slots) admit() {
	for len(s.waiting) > 0 && s.waiting[0].weight <= s.free {
		w := heap.Pop(&s.waiting).(*waiter) // it holds nothing else
		s.free -= w.weight
		close(w.enter)
	}
}

// A queue is a heap of waiters by rank.
type queue []*waiter

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].rank < q[j].rank }
func (q queue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].at, q[j].at = i, j
}

// Push is called by package heap.
func (q *queue) Push(x any) {
	w := x.(*waiter) // it holds nothing else
	w.at = len(*q)
	*q = append(*q, w)
}

// Pop is called by package heap.
func (q *queue) Pop() any {
	old := *q
	w := old[len(old)-1]
	*q, w.at = old[:len(old)-1], -1
	return w
}
