package capacity

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"
)

// TestWatch: preemptions are counted as they happen, a restart starts anew, and
// a server that goes away is an error.
func TestWatch(t *testing.T) {
	t.Parallel()
	counts := []int{5, 5, 7, 7, 1, 2} // 2 more, then a restart with 1, then 1 more
	var n atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		i := int(n.Add(1)) - 1
		if i >= len(counts) {
			http.Error(w, "gone", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintf(w, "# TYPE vllm:num_preemptions_total counter\nvllm:num_preemptions_total{engine=\"0\"} %d\n", counts[i])
	}))
	defer s.Close()
	var seen []int
	total, answers, err := Watch(t.Context(), s.Client(), s.URL, time.Millisecond, func(n int) { seen = append(seen, n) })
	if total != 4 || answers != len(counts) || err == nil || len(seen) != 3 {
		t.Errorf("%d preemptions in %d answers, %v, %v; want 4 in 6 and an error", total, answers, seen, err)
	}
}

func TestWatchEnds(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "# TYPE vllm:num_preemptions_total counter\nvllm:num_preemptions_total{engine=\"0\"} 0\n")
	}))
	defer s.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if total, answers, err := Watch(ctx, s.Client(), s.URL, time.Millisecond, func(int) {}); total != 0 || answers < 1 || err != nil {
		t.Errorf("%d in %d answers: %v", total, answers, err)
	}
	none := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "# TYPE up gauge\nup 1\n") }))
	defer none.Close()
	if _, _, err := Watch(t.Context(), none.Client(), none.URL, time.Millisecond, func(int) {}); err == nil {
		t.Error("a server without the counter has no error")
	}
}
