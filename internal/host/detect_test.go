package host

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/invar-ops/invar/internal/run"
)

func TestDetectEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	cancel(why)
	if _, err := Detect(ctx, Options{Root: t.TempDir()}); !errors.Is(err, why) {
		t.Errorf("got %v, want %v", err, why)
	}
}

// slow answers nothing in time, as an npu-smi that waits for a driver lock does.
type slow struct{}

func (slow) Run(ctx context.Context, c run.Cmd) (run.Result, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.Timeout, &run.TimeoutError{After: c.Timeout})
	defer cancel()
	<-ctx.Done()
	return run.Result{Code: -1}, &run.Error{Cmd: c, Err: context.Cause(ctx)}
}

func TestToolThatHangs(t *testing.T) {
	t.Parallel()
	m := readMachine(t, "testdata/machines/a2.txtar")
	start := time.Now()
	f, err := Detect(t.Context(), Options{Root: m.root, Env: m.env, Runner: slow{}, Timeout: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if v := Judge(f); v.State != Known || v.Family != "ascend910b" || v.Health.Usable {
		t.Errorf("the bus still names the family: got %+v", v)
	}
	if e := time.Since(start); e > 2*time.Second {
		t.Errorf("took %s", e)
	}
	if e := f.find("npu-smi info"); e.Says != Unclear || e.Reason == "" {
		t.Errorf("got %+v", e)
	}
}

// together answers only when as many questions as it was told of are under way.
type together struct {
	mu      sync.Mutex
	waiting int
	all     chan struct{}
	want    int
}

func (r *together) Run(ctx context.Context, c run.Cmd) (run.Result, error) {
	r.mu.Lock()
	if r.waiting++; r.waiting == r.want {
		close(r.all)
	}
	r.mu.Unlock()
	select {
	case <-r.all:
		return run.Result{}, nil
	case <-ctx.Done():
		return run.Result{}, &run.Error{Cmd: c, Err: context.Cause(ctx)}
	}
}

// TestGPUToolIsAskedAtOnce: no question to nvidia-smi waits for the answer to
// another, so that a host with GPUs takes as long as the slowest of them.
func TestGPUToolIsAskedAtOnce(t *testing.T) {
	t.Parallel()
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "nvidia-smi"), nil, 0o755); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	r := &together{all: make(chan struct{}), want: 5}
	if _, err := Detect(ctx, Options{Runner: r, Env: []string{"PATH=" + bin}}); err != nil {
		t.Fatal(err)
	}
	if r.waiting != r.want {
		t.Errorf("%d questions, want %d", r.waiting, r.want)
	}
}

// starts fails the test when a process is started.
type starts struct{ t *testing.T }

func (s starts) Run(_ context.Context, c run.Cmd) (run.Result, error) {
	s.t.Errorf("started %s", c)
	return run.Result{}, errors.New("no")
}

func TestNothingIsStartedWithoutTools(t *testing.T) {
	t.Parallel()
	if _, err := Detect(t.Context(), Options{Root: t.TempDir(), Runner: starts{t}, Env: []string{"PATH=/usr/bin"}}); err != nil {
		t.Fatal(err)
	}
}

func BenchmarkDetectThisHost(b *testing.B) {
	for b.Loop() {
		f, err := Detect(b.Context(), Options{Env: os.Environ()})
		if err != nil {
			b.Fatal(err)
		}
		Judge(f)
	}
}
