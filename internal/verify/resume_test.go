package verify

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"testing"
	"testing/synctest"
	"time"

	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/testkit/simserver"
	"github.com/invar-ops/invar/internal/verify/judge"
)

// TestGoesOnAfterAnInterruption stops a verification at many moments; each time
// the next call comes to the same counts as one that nobody stopped, and what
// was answered before the stop is compared too.
func TestGoesOnAfterAnInterruption(t *testing.T) {
	t.Parallel()
	for _, defect := range []simserver.Defect{"", simserver.BatchOfOne} {
		step := 1
		if testing.Short() {
			step = 4
		}
		for n := 1; n < 12; n += step {
			t.Run(fmt.Sprintf("%s after %d", defect, n), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { interrupted(t, defect, time.Duration(n)*50*time.Millisecond) })
			})
		}
	}
}

func interrupted(t *testing.T, defect simserver.Defect, after time.Duration) {
	c := simserver.Config{Seed: 1, Defects: []simserver.Defect{defect}}
	o := Options{
		URL: "http://sim", Timeout: time.Minute, Preset: "quick", Progress: report.Discard, State: filepath.Join(t.TempDir(), "state"),
		Transport: simserver.Transport{Handler: simserver.New(c)},
	}
	ctx, cancel := context.WithTimeout(t.Context(), after)
	defer cancel()
	part, err := Server(ctx, o)
	stopped := ctx.Err() != nil && err != nil
	if stopped && part != nil && part.Verdict.Word == judge.Invariant {
		t.Errorf("a part alone was called invariant: %+v", part.Verdict)
	}
	if stopped && part != nil && defect == "" && part.Verdict.Word == judge.Variant {
		t.Errorf("a stop was taken for a difference: %+v", part.Verdict)
	}
	res, err := Server(t.Context(), o)
	want := report.Done
	if defect != "" {
		want = report.CheckFailed
	}
	if res == nil || report.ExitCode(err) != want {
		t.Fatalf("%+v, %v, want code %d", res, err, want)
	}
	for _, w := range res.Workloads {
		complete := 0
		for _, r := range w.Runs {
			if r.Complete {
				complete++
			}
		}
		if want := map[string]int{"pr-45683": 3, "repeats-51187": 5, "decode-prefill": 5}[w.Name]; complete != want {
			t.Errorf("%s: %d complete runs, want %d", w.Name, complete, want)
		}
	}
	time.Sleep(time.Minute)
}

// TestFlatMemory: ten times the requests need no more memory than the digests
// of their answers. Not parallel: it watches the heap of the process.
func TestFlatMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("short: ten thousand requests")
	}
	defer debug.SetGCPercent(debug.SetGCPercent(20))
	small, large := peak(t, 1000), peak(t, 10000)
	t.Logf("peak of the heap: %d MB for 1000, %d MB for 10000", small>>20, large>>20)
	if large > small+24<<20 {
		t.Errorf("10000 requests took %d MB more than 1000", (large-small)>>20)
	}
}

// peak verifies n prompts and is the largest heap that was seen meanwhile.
func peak(t *testing.T, n int) uint64 {
	t.Helper()
	runtime.GC()
	done, most := make(chan struct{}), make(chan uint64)
	go func() {
		var m runtime.MemStats
		var top uint64
		for {
			select {
			case <-done:
				most <- top
				return
			case <-time.After(20 * time.Millisecond):
				runtime.ReadMemStats(&m)
				top = max(top, m.HeapAlloc)
			}
		}
	}()
	res, err := simulate(t, simserver.Config{Seed: 1, NoCache: true, Defects: []simserver.Defect{simserver.BatchOfOne}}, func(o *Options) {
		o.Workloads, o.Count, o.Concurrency, o.State = []string{"pr-45683"}, n, 64, t.TempDir()
	})
	close(done)
	if res == nil || res.Workloads[0].Pairs != 3*n || res.Verdict.Word != judge.Variant {
		t.Fatalf("%v", err)
	}
	return <-most
}
