package invar

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/run"
)

// started remembers what was started.
type started struct {
	mu   sync.Mutex
	argv []string
}

func (s *started) Run(ctx context.Context, c run.Cmd) (run.Result, error) {
	s.mu.Lock()
	s.argv = append(s.argv, strings.Join(c.Argv, " "))
	s.mu.Unlock()
	return run.System{}.Run(ctx, c)
}

// TestHostIsAskedOnceAVerb: a plan for a detected GPU needs the answer twice,
// a build up to five times; nvidia-smi hears each question once.
func TestHostIsAskedOnceAVerb(t *testing.T) {
	t.Parallel()
	bin := t.TempDir()
	smi := "#!/bin/sh\ncase $1 in\n--query-gpu*) echo 'index, name, uuid, pci.bus_id, compute_cap, driver_version, memory.total [MiB], memory.used [MiB], mig.mode.current'\n" +
		"echo '0, NVIDIA H200, GPU-1, 00000000:19:00.0, 9.0, 580.95.05, 143771 MiB, 0 MiB, Disabled' ;;\n" +
		"-L) echo 'GPU 0: NVIDIA H200 (UUID: GPU-1)' ;;\nesac\n"
	if err := os.WriteFile(filepath.Join(bin, "nvidia-smi"), []byte(smi), 0o755); err != nil {
		t.Fatal(err)
	}
	var r started
	s := Session{Prefix: filepath.Join(t.TempDir(), "home"), Env: []string{"PATH=" + bin + ":" + os.Getenv("PATH")}, Runner: &r, Progress: report.Discard, Version: "1.0.0"}
	for verb := 1; verb <= 2; verb++ {
		p, _ := s.Plan(t.Context(), Options{Target: "cuda"}) // requirements may be missing here
		if p.CUDA == nil || !strings.Contains(strings.Join(p.CUDA.Arches, " "), "9.0") && !strings.Contains(strings.Join(p.CUDA.Arches, " "), "90") {
			t.Fatalf("the GPU was not seen: %+v", p.CUDA)
		}
		if _, err := s.asking().detect(t.Context(), ""); err != nil {
			t.Fatal(err)
		}
		asked := map[string]int{}
		r.mu.Lock()
		for _, a := range r.argv {
			if strings.Contains(a, "nvidia-smi") {
				asked[a]++
			}
		}
		r.mu.Unlock()
		if len(asked) < 2 {
			t.Fatalf("only %v was asked", asked)
		}
		for question, n := range asked {
			if n != 2*verb {
				t.Errorf("verb %d: %q was asked %d times, want %d: once by each verb", verb, question, n, 2*verb)
			}
		}
	}
	// Within one verb the second look is free.
	one := s.asking()
	before := len(r.argv)
	for range 3 {
		if _, err := one.detect(t.Context(), "sm_90"); err != nil {
			t.Fatal(err)
		}
	}
	again := len(r.argv) - before
	if _, err := s.asking().detect(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	if fresh := len(r.argv) - before - again; again != fresh || fresh == 0 {
		t.Errorf("three looks of one verb started %d processes, one of a new verb %d; want the same", again, fresh)
	}
}
