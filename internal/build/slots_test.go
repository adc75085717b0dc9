package build

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
)

// TestSlotsLetInByRank: who waits is let in by rank, whenever it came.
func TestSlotsLetInByRank(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSlots(2)
		if err := s.acquire(t.Context(), 9, 2); err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		var order []int
		for _, rank := range []int{7, 3, 5, 1} {
			go func() {
				if err := s.acquire(t.Context(), rank, 2); err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				order = append(order, rank)
				mu.Unlock()
				s.release(2)
			}()
			synctest.Wait()
		}
		s.release(2)
		synctest.Wait()
		if !slices.Equal(order, []int{1, 3, 5, 7}) {
			t.Errorf("let in %v, want by rank", order)
		}
	})
}

// TestSlotsOfTheInterrupted: who gives up keeps nothing and holds back nobody,
// a wide one at the head of the queue included.
func TestSlotsOfTheInterrupted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSlots(2)
		if err := s.acquire(t.Context(), 0, 1); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var wide, narrow error
		in := false
		go func() { wide = s.acquire(ctx, 1, 2) }()
		synctest.Wait()
		go func() { narrow = s.acquire(t.Context(), 2, 1); in = true }()
		synctest.Wait()
		if in {
			t.Error("a step overtook one of lower rank that needs more slots")
		}
		cancel()
		synctest.Wait()
		if wide == nil || narrow != nil || !in {
			t.Errorf("the interrupted one: %v; the one behind it: %v, let in %v", wide, narrow, in)
		}
		s.release(1)
		s.release(1)
		if err := s.acquire(t.Context(), 0, 2); err != nil || s.free != 0 {
			t.Errorf("%v, %d slots free; want both to have been given back", err, s.free)
		}
	})
}
