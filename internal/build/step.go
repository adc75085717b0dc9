package build

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/invar-ops/invar/internal/plan"
	"github.com/invar-ops/invar/internal/run"
	"github.com/invar-ops/invar/internal/store"
)

func contextEnded(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// carryOut runs one step in the scratch folder and records what it made.
func (b *Builder) carryOut(ctx context.Context, s plan.Step, needs []*task) (store.Action, error) {
	if err := b.stage(s, needs); err != nil {
		return store.Action{}, err
	}
	a := store.Action{Fingerprint: s.Fingerprint, Step: s.ID, Made: time.Now().UTC(), Outputs: map[string]store.Object{}}
	var err error
	outputs := s.Outputs
	switch s.Kind {
	case plan.Run:
		err = b.narrowing(ctx, s)
	case plan.Prove:
		err = b.slot(ctx, s, 1, func() error { return b.prove(ctx, s) })
	case plan.Pack:
		err = b.slot(ctx, s, 1, func() error { return b.pack(ctx, s) })
	case plan.Wheel:
		err = b.slot(ctx, s, 1, func() error { outputs, err = b.wheel(ctx, s); return err })
	default:
		err = errors.New("no artifact step: " + string(s.Kind))
	}
	if err != nil {
		return a, err
	}
	for _, o := range outputs {
		obj, err := b.store.Put(ctx, filepath.Join(b.work, o))
		if err != nil {
			return a, err
		}
		a.Outputs[o] = obj
	}
	return a, b.store.Record(a)
}

// slot runs work for s when a slot is free. The order of the plan is the order
// in which steps are let in.
func (b *Builder) slot(ctx context.Context, s plan.Step, weight int64, work func() error) error {
	rank := slices.IndexFunc(b.plan.Steps, func(o plan.Step) bool { return o.ID == s.ID })
	if err := b.slots.acquire(ctx, rank, weight); err != nil {
		return err
	}
	defer b.slots.release(weight)
	return work()
}

func (b *Builder) process(ctx context.Context, s plan.Step) error {
	argv := s.Argv
	_, err := b.runner.Run(ctx, run.Cmd{
		Argv: argv, Dir: b.work, Env: append(append([]string{}, b.env...), s.Env...), Log: b.log(s),
	})
	return err
}

// log is the file that the step's output goes to: one a stage and process.
func (b *Builder) log(s plan.Step) string {
	name := strings.ReplaceAll(s.Stage, " ", "") + "-" + filepath.Base(b.work)
	return filepath.Join(b.logDir, name+".log")
}

// stage puts the sources, and what the step needs, into the scratch folder.
func (b *Builder) stage(s plan.Step, needs []*task) error {
	b.mu.Lock() // sources and outputs are shared by steps that run side by side
	defer b.mu.Unlock()
	for _, in := range s.Inputs {
		if rel, ok := strings.CutPrefix(in.Name, "src/"); ok {
			if err := b.source(rel); err != nil {
				return err
			}
		}
	}
	for _, t := range needs {
		for name, obj := range t.action.Outputs {
			if err := link(b.store.Path(obj.SHA256), filepath.Join(b.work, name)); err != nil {
				return err
			}
		}
	}
	for _, o := range s.Outputs {
		dir := filepath.Dir(o)
		if s.Kind == plan.Wheel {
			dir = o
		}
		if err := os.MkdirAll(filepath.Join(b.work, dir), 0o755); err != nil {
			return err
		}
	}
	return nil
}

func (b *Builder) source(rel string) error {
	to := filepath.Join(b.work, "src", filepath.FromSlash(rel))
	if _, err := os.Lstat(to); err == nil {
		return nil
	}
	text, err := fs.ReadFile(b.sources, rel)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.WriteFile(to, text, 0o644)
}

// link copies an object of the store into place. A hard link would let a
// compiler that writes in place damage the store.
func link(from, to string) error {
	if _, err := os.Lstat(to); err == nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, text, 0o644)
}
