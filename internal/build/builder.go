// Package build carries out the artifact steps of a plan: compiles, links,
// packs. Each step is skipped when the store holds its fingerprint; what it
// made is recorded after success only, so that a killed build starts again
// where it was.
package build

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/invar-ops/invar/internal/plan"
	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/run"
	"github.com/invar-ops/invar/internal/store"
)

// A Builder builds the steps of one plan. Make it with New and Close it.
type Builder struct {
	plan    plan.Plan
	store   *store.Store
	runner  run.Runner
	env     []string // of compilers, beside what the step says
	sources fs.FS
	logDir  string
	work    string
	slots   *slots
	jobs    int
	weight  atomic.Int64 // slots that one process takes; grows when memory runs out
	note    func(string)

	ahead sync.WaitGroup // what Prepare began
	stops []func()       // each ends one Prepare

	mu       sync.Mutex
	steps    map[string]*task
	counters map[string]counter // by stage
}

// Options are what a Builder works with.
type Options struct {
	Plan    plan.Plan
	Store   *store.Store
	Runner  run.Runner
	Env     []string // PATH and TMPDIR are taken from it
	Sources fs.FS    // targets.FS
	LogDir  string
	Jobs    int          // processes at a time
	Note    func(string) // told when a build goes on with less than it was given; may be nil
}

// A task is one step under way or done.
type task struct {
	done   chan struct{}
	action store.Action
	cached bool
	err    error
}

// New makes a scratch folder inside the prefix, on the file system of the store.
func New(o Options) (*Builder, error) {
	parent := filepath.Join(o.Plan.Prefix, "work")
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return nil, store.Explain(err, "prefix "+o.Plan.Prefix)
	}
	work, err := os.MkdirTemp(parent, "build-")
	if err != nil {
		return nil, store.Explain(err, "prefix "+o.Plan.Prefix)
	}
	if err := os.MkdirAll(o.LogDir, 0o755); err != nil {
		_ = os.RemoveAll(work)
		return nil, store.Explain(err, "log folder "+o.LogDir)
	}
	env := run.Pick(o.Env, "PATH")
	// Compilers write scratch files; they go where ours go and away with them.
	b := &Builder{
		plan: o.Plan, store: o.Store, runner: o.Runner, sources: o.Sources, logDir: o.LogDir, work: work,
		env: append(env, "TMPDIR="+work), jobs: max(1, o.Jobs), slots: newSlots(max(1, o.Jobs)), steps: map[string]*task{},
		counters: map[string]counter{}, note: o.Note,
	}
	if b.note == nil {
		b.note = func(string) {}
	}
	b.weight.Store(1)
	return b, nil
}

// Close stops what Prepare began and removes the scratch folder.
func (b *Builder) Close() error {
	for _, stop := range b.stops {
		stop()
	}
	b.ahead.Wait()
	return os.RemoveAll(b.work)
}

// An Artifact is a finished file of the store.
type Artifact struct {
	store.Object
	Path   string // of a copy under its own name, until Close
	Cached bool   // nothing had to be run for it
}

// Make builds the step id and what it needs, and returns its one output.
// tick is called, from several goroutines, after each step of its stage that
// was run.
func (b *Builder) Make(ctx context.Context, id string, tick func()) (Artifact, error) {
	if s, ok := b.plan.Step(id); ok {
		b.countBy(s.Stage, tick)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	t := b.ensure(ctx, cancel, id)
	if t.err != nil {
		return Artifact{}, t.err
	}
	for _, o := range t.action.Outputs {
		a := Artifact{Object: o, Path: filepath.Join(b.work, "out", o.Name), Cached: t.cached}
		return a, link(b.store.Path(o.SHA256), a.Path)
	}
	return Artifact{}, fmt.Errorf("step %s has no output", id)
}

// ensure returns the finished task of a step, running it once however many ask.
// A failure cancels the rest of the build.
func (b *Builder) ensure(ctx context.Context, cancel context.CancelFunc, id string) *task {
	b.mu.Lock()
	t, running := b.steps[id]
	if !running {
		t = &task{done: make(chan struct{})}
		b.steps[id] = t
	}
	b.mu.Unlock()
	if running {
		<-t.done
		return t
	}
	t.err = b.finish(ctx, cancel, id, t)
	if t.err != nil {
		cancel()
	}
	close(t.done)
	return t
}

func (b *Builder) finish(ctx context.Context, cancel context.CancelFunc, id string, t *task) error {
	s, ok := b.plan.Step(id)
	if !ok {
		return fmt.Errorf("the plan has no step %s", id)
	}
	a, why, err := b.store.Lookup(ctx, s.Fingerprint)
	if err != nil {
		return err
	}
	if why == "" {
		t.action, t.cached = a, true
		return nil
	}
	needs, err := b.needs(ctx, cancel, s)
	if err != nil {
		return err
	}
	if t.action, err = b.carryOut(ctx, s, needs); err != nil {
		return b.problem(s, err)
	}
	b.count(s.Stage)
	return nil
}

// needs builds what s reads, side by side, and puts it into the scratch folder.
func (b *Builder) needs(ctx context.Context, cancel context.CancelFunc, s plan.Step) ([]*task, error) {
	tasks := make([]*task, len(s.Needs))
	var wg sync.WaitGroup
	for i, n := range s.Needs {
		wg.Go(func() { tasks[i] = b.ensure(ctx, cancel, n) })
	}
	wg.Wait()
	var first error
	for _, t := range tasks {
		// The root cause goes first; what was cancelled because of it says nothing.
		if t.err != nil && (first == nil || isCancel(first)) {
			first = t.err
		}
	}
	return tasks, first
}

func isCancel(err error) bool {
	return report.ExitCode(err) == report.Failed && contextEnded(err)
}
