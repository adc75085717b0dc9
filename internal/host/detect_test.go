package host

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
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

// TestGPUToolIsAskedAtOnce: of the questions to nvidia-smi that are asked in
// any case, and of those that come when they told nothing, none waits for the
// answer to another.
func TestGPUToolIsAskedAtOnce(t *testing.T) {
	t.Parallel()
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "nvidia-smi"), nil, 0o755); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	first, more := &together{all: make(chan struct{}), want: 2}, &together{all: make(chan struct{}), want: 3}
	r := waves{first, more}
	if _, err := Detect(ctx, Options{Runner: r, Env: []string{"PATH=" + bin}}); err != nil {
		t.Fatal(err)
	}
	if first.waiting != first.want || more.waiting != more.want {
		t.Errorf("%d and then %d questions, want %d and %d", first.waiting, more.waiting, first.want, more.want)
	}
}

// waves tells the questions that are asked in any case from the others.
type waves struct{ first, more *together }

func (w waves) Run(ctx context.Context, c run.Cmd) (run.Result, error) {
	if len(c.Argv) > 1 && strings.HasPrefix(c.Argv[1], "--") {
		return w.first.Run(ctx, c)
	}
	return w.more.Run(ctx, c)
}

// counting answers from a replay and counts.
type counting struct {
	run.Runner
	mu   sync.Mutex
	argv []string
}

func (r *counting) Run(ctx context.Context, c run.Cmd) (run.Result, error) {
	r.mu.Lock()
	r.argv = append(r.argv, strings.Join(c.Argv, " "))
	r.mu.Unlock()
	return r.Runner.Run(ctx, c)
}

// TestFewQuestionsTellTheSame: what decides is the same whether every question
// was asked or the few; and the few were enough where nothing was odd.
func TestFewQuestionsTellTheSame(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/machines/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	enough, open := 0, 0
	for _, file := range files {
		m := readMachine(t, file)
		asks := slices.ContainsFunc(m.answers, func(x run.Exchange) bool { return strings.HasSuffix(x.Argv[0], "/nvidia-smi") })
		if !asks {
			continue
		}
		judged := func(whole bool) (Verdict, int) {
			r := &counting{Runner: run.NewReplay(m.answers)}
			f, err := Detect(t.Context(), Options{Root: m.root, Env: m.env, SoC: m.soc, Runner: r, Whole: whole})
			if err != nil {
				t.Fatal(err)
			}
			return Judge(f), len(r.argv)
		}
		all, n := judged(true)
		few, k := judged(false)
		if few.State != all.State || few.Target != all.Target || few.SoC != all.SoC || !slices.Equal(few.SoCs, all.SoCs) || few.Count != all.Count ||
			few.Driver != all.Driver || few.CUDA != all.CUDA || few.Health.Usable != all.Health.Usable || few.ExitCode() != all.ExitCode() {
			t.Errorf("%s: %d questions give %+v, %d %+v", file, k, few, n, all)
		}
		if k < n {
			enough++
		} else {
			open++
		}
	}
	if enough == 0 || open == 0 {
		t.Errorf("fewer questions were enough on %d machines and not on %d; want some of both", enough, open)
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
