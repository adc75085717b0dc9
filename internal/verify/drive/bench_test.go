package drive

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/invar-ops/invar/internal/openai"
	"github.com/invar-ops/invar/internal/testkit/simserver"
	"github.com/invar-ops/invar/internal/verify/dialect"
	"github.com/invar-ops/invar/internal/verify/journal"
	"github.com/invar-ops/invar/internal/verify/workload"
)

// BenchmarkClient is the time of a run of 32 requests at once, with everything
// that is kept and read, against a bare client that sends the same bytes and
// throws the answers away. Both sides take turns; the server needs 10 ms a step.
func BenchmarkClient(b *testing.B) {
	for _, stream := range []bool{false, true} {
		b.Run(map[bool]string{false: "whole", true: "stream"}[stream], func(b *testing.B) {
			s := httptest.NewServer(simserver.New(simserver.Config{Seed: 1, Step: 10 * time.Millisecond}))
			defer s.Close()
			ws, err := workload.Select("", []string{"pr-45683"}, 0)
			if err != nil {
				b.Fatal(err)
			}
			w := ws[0]
			w.Sampling.MaxTokens = 32
			j, err := journal.Open(b.TempDir(), journal.Head{})
			if err != nil {
				b.Fatal(err)
			}
			defer j.Close()
			all, err := dialect.All()
			if err != nil {
				b.Fatal(err)
			}
			d := &Driver{Client: openai.New(s.URL, openai.Options{Connections: 64}), Engine: all[0], Model: simserver.Model, Journal: j}
			a := workload.Arrangement{Name: "at once", Mode: workload.Concurrent, Repeat: 1, Cache: workload.Apart, Stream: stream}
			bare := bareClient(b, s.URL, d, w, a)
			var mine, theirs time.Duration
			for n := 0; b.Loop(); n++ {
				start := time.Now()
				bare(n)
				theirs += time.Since(start)
				start = time.Now()
				if _, err := d.Run(b.Context(), w, a, journal.Key{Workload: w.Name, Repeat: n}); err != nil {
					b.Fatal(err)
				}
				mine += time.Since(start)
			}
			b.ReportMetric(float64(mine)/float64(theirs), "ratio")
			b.ReportMetric(theirs.Seconds()*1000/float64(b.N), "bare-ms")
		})
	}
}

// bareClient sends the requests of a run at once and reads nothing of the answers.
func bareClient(b *testing.B, url string, d *Driver, w workload.Workload, a workload.Arrangement) func(int) {
	c := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	return func(n int) {
		rn := &running{d: d, w: w, a: a, r: &journal.Run{Key: journal.Key{Role: "bare", Repeat: n}}}
		var wg sync.WaitGroup
		for i, p := range w.Prompts.All() {
			f, _ := rn.fields(p, i)
			if a.Stream {
				maps.Copy(f, openai.Fields{"stream": true, "stream_options": map[string]any{"include_usage": true}})
			}
			body, err := json.Marshal(f)
			if err != nil {
				b.Fatal(err)
			}
			wg.Go(func() {
				res, err := c.Post(url+"/v1/completions", "application/json", bytes.NewReader(body))
				if err != nil {
					b.Error(err)
					return
				}
				_, _ = io.Copy(io.Discard, res.Body)
				_ = res.Body.Close()
			})
		}
		wg.Wait()
	}
}
