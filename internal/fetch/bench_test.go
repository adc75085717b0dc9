package fetch

import (
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"
)

// The size of a released run package.
const released = 105 << 20

// BenchmarkDownload compares with curl on the same link, loopback, where the
// digest costs most. Both write a file; only invar knows what is in it. Rounds
// take turns; of-curl is the ratio of the rates, medians. alloc-MiB is what one
// download allocates in all: it does not grow with the file.
func BenchmarkDownload(b *testing.B) {
	curl, err := exec.LookPath("curl")
	if err != nil {
		b.Skip("needs curl")
	}
	body, sum := payload(released)
	s := httptest.NewServer(content(body))
	defer s.Close()
	dir := b.TempDir()
	var theirs, ours []time.Duration
	var allocated []uint64
	for b.Loop() {
		to := filepath.Join(dir, "x")
		start := time.Now()
		if out, err := exec.CommandContext(b.Context(), curl, "-sSf", "-o", to, s.URL).CombinedOutput(); err != nil {
			b.Fatalf("%v: %s", err, out)
		}
		theirs = append(theirs, time.Since(start))
		cache := filepath.Join(dir, "cache")
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		start = time.Now()
		if _, err := Get(b.Context(), Item{Name: "x", URLs: []string{s.URL}, Pins: pins(sum)}, Options{Cache: cache}); err != nil {
			b.Fatal(err)
		}
		ours = append(ours, time.Since(start))
		runtime.ReadMemStats(&after)
		allocated = append(allocated, after.TotalAlloc-before.TotalAlloc) // the server's part is in it, too
		for _, d := range []string{to, cache} {
			if err := os.RemoveAll(d); err != nil {
				b.Fatal(err)
			}
		}
	}
	slices.Sort(theirs)
	slices.Sort(ours)
	slices.Sort(allocated)
	mid := len(ours) / 2
	b.ReportMetric(theirs[mid].Seconds()/ours[mid].Seconds(), "of-curl")
	b.ReportMetric(float64(released)/1e6/ours[mid].Seconds(), "ours-MB/s")
	b.ReportMetric(float64(released)/1e6/theirs[mid].Seconds(), "curl-MB/s")
	b.ReportMetric(float64(allocated[mid])/(1<<20), "alloc-MiB")
}
