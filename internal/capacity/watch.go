package capacity

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/invar-ops/invar/internal/metrics"
)

// Fetch reads /metrics of the server at url.
func Fetch(ctx context.Context, client *http.Client, url string) (metrics.Snapshot, error) {
	if !strings.HasSuffix(strings.TrimRight(url, "/"), "/metrics") {
		url = strings.TrimRight(url, "/") + "/metrics"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return metrics.Snapshot{}, err
	}
	res, err := client.Do(req)
	if err != nil {
		return metrics.Snapshot{}, err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return metrics.Snapshot{}, fmt.Errorf("%s: %s, want 200", url, res.Status)
	}
	b, err := io.ReadAll(io.LimitReader(res.Body, 64<<20))
	if err != nil {
		return metrics.Snapshot{}, err
	}
	return metrics.Parse(b)
}

// Watch asks url every interval and calls seen with the number of new
// preemptions whenever there are some. It ends with ctx, and returns how many
// there were and how often the server answered. A server that restarts counts
// from zero again; one that stops answering is an error.
func Watch(ctx context.Context, client *http.Client, url string, interval time.Duration, seen func(int)) (total, answers int, err error) {
	last := -1
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		s, err := Fetch(ctx, client, url)
		if ctx.Err() != nil {
			return total, answers, nil
		}
		if err != nil {
			return total, answers, err
		}
		answers++
		if _, ok := s.Sum("engine", "vllm:num_preemptions_total", "vllm:num_preemptions"); !ok {
			return total, answers, fmt.Errorf("%s has no counter of preemptions (vllm:num_preemptions_total)", url)
		}
		n := Preemptions(s)
		if last >= 0 && n != last {
			added := n - last
			if added < 0 { // restarted
				added = n
			}
			if added > 0 {
				total += added
				seen(added)
			}
		}
		last = n
		select {
		case <-ctx.Done():
			return total, answers, nil
		case <-tick.C:
		}
	}
}
