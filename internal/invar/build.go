package invar

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/invar-ops/invar/internal/build"
	"github.com/invar-ops/invar/internal/cuda"
	"github.com/invar-ops/invar/internal/install"
	"github.com/invar-ops/invar/internal/plan"
	"github.com/invar-ops/invar/internal/probe"
	"github.com/invar-ops/invar/internal/python"
	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/store"
	"github.com/invar-ops/invar/targets"
)

// A BuildResult says what Build did.
type BuildResult struct {
	Target   string          `json:"target"`
	Why      string          `json:"why"`
	UpToDate bool            `json:"up_to_date"`
	Receipt  install.Receipt `json:"receipt,omitzero"`
	Probe    *probe.Result   `json:"probe,omitempty"`
	Probed   time.Time       `json:"probed,omitzero"` // when the generation was proved
	Elapsed  time.Duration   `json:"elapsed_ns"`
}

// Build does the main job: both stages, one transaction, probe. Nothing that
// was there before is lost when any part of it fails.
func (s Session) Build(ctx context.Context, o Options) (BuildResult, error) {
	start := time.Now()
	s = s.asking()
	vllm, err := s.installVLLM(ctx, o)
	if err != nil {
		return BuildResult{Target: o.Target}, err
	}
	s.vllm = vllm
	p, err := s.Plan(ctx, o)
	if err != nil {
		return BuildResult{Target: p.Target}, err
	}
	res := BuildResult{Target: p.Target, Why: p.Why}
	s.announce(p)
	if done, ok := s.upToDate(ctx, p, o); ok {
		done.Elapsed = time.Since(start)
		return done, nil
	}
	prefix, err := install.Open(s.Prefix)
	if err != nil {
		return res, err
	}
	if err := prefix.Lock(ctx, store.LockOptions{
		NoWait: o.NoWait, Command: "invar build " + p.Target, Progress: s.Progress,
	}); err != nil {
		return res, err
	}
	defer func() { _ = prefix.Unlock() }()
	if p, err = s.environment(ctx, p, o); err != nil {
		return res, err
	}
	if p, err = s.toolkit(ctx, p, o); err != nil {
		return res, withState(err, s.activeState(p))
	}
	if err := s.shim(p); err != nil {
		return res, err
	}
	quiet := s // what is not whole was said above
	quiet.Progress = report.Discard
	if done, ok := quiet.upToDate(ctx, p, o); ok {
		done.Elapsed = time.Since(start)
		return done, nil // the one that held the lock did the work
	}
	do := s.install
	if p.Release != nil {
		do = s.installRelease
	}
	if res.Receipt, err = do(ctx, prefix, p, o); err != nil {
		return res, withState(err, s.activeState(p))
	}
	s.savePlan(p)
	if p.CUDA != nil {
		cuda.Remember(s.Prefix, p.CUDA.Toolkit)
	}
	err = s.prove(ctx, prefix, p, &res)
	res.Elapsed = time.Since(start)
	return res, err
}

// announce shows what was found and chosen, before anything is done.
func (s Session) announce(p plan.Plan) {
	s.Progress.Note(fmt.Sprintf("target    %s, because %s", p.Target, p.Why))
	if c := p.CUDA; c != nil {
		s.Progress.Note(fmt.Sprintf("toolkit   CUDA %s at %s (%s)", c.Version, c.Toolkit, c.From))
		s.Progress.Note(fmt.Sprintf("GPUs      %s (%s)", strings.Join(c.Arches, ", "), c.Why))
	}
	if p.Recipe != nil {
		s.Progress.Note(fmt.Sprintf("python    %s; making %s", p.Recipe.Reason(), p.Recipe.Dir))
		return
	}
	s.Progress.Note(fmt.Sprintf("python    %s, torch %s (%s)", p.Python.Exe, p.Python.Torch.Version, p.Python.Why))
	if r := p.Release; r != nil {
		s.Progress.Note(fmt.Sprintf("CANN      %s in %s, because %s", r.CANN.CANN.Version, r.CANN.CANN.Dir, r.CANN.Why))
	}
}

// environment makes the Python environment that the plan lacks and plans again
// with what is really there.
func (s Session) environment(ctx context.Context, p plan.Plan, o Options) (plan.Plan, error) {
	if p.Recipe == nil {
		return p, nil
	}
	if err := os.MkdirAll(s.LogDir(), 0o755); err != nil {
		return p, store.Explain(err, "log folder "+s.LogDir())
	}
	log := filepath.Join(s.LogDir(), "python-"+filepath.Base(p.Recipe.Dir)+".log")
	_, err := python.Make(ctx, *p.Recipe, python.Options{Env: s.Env, Home: s.Prefix, Runner: s.Runner}, log, plan.StagePython, s.Progress)
	if err != nil {
		if pr, ok := errors.AsType[*report.Problem](err); ok && pr.Log != "" {
			build.Diagnose(pr, pr.Log)
			if pr.Rule == build.DiskFull {
				s.full(pr)
			}
		}
		return p, err
	}
	return s.Plan(ctx, o)
}

// install builds the artifacts and installs them as one transaction: stage 2
// starts when stage 1 is in place.
func (s Session) install(ctx context.Context, prefix *install.Prefix, p plan.Plan, o Options) (install.Receipt, error) {
	var none install.Receipt
	req := install.Request{
		Bundle: install.Bundle{Target: p.Target, Flavour: p.Flavour, Fingerprint: p.Fingerprint, Contract: p.Contract},
		Python: p.Python, Replace: o.Replace, TakeOver: o.TakeOver, Env: s.Env, Invar: s.Version,
	}
	if p.Includes != "" {
		req.Bundle.Supersedes = []string{p.Includes}
	}
	if p.CUDA != nil {
		req.GPUs = p.CUDA.GPUs
	}
	tx, err := prefix.Begin(ctx, req)
	if err != nil {
		return none, err
	}
	defer tx.Abort() // does nothing after Commit
	st, err := store.Open(s.Prefix)
	if err != nil {
		return none, err
	}
	b, err := build.New(build.Options{
		Plan: p, Store: st, Runner: s.Runner, Env: s.Env, Sources: targets.FS, LogDir: s.LogDir(), Jobs: s.jobs(ctx, o, p), Note: s.Progress.Note,
	})
	if err != nil {
		return none, err
	}
	defer func() { _ = b.Close() }()
	// Processors that stage 1 leaves idle compile stage 2 already; it is put in
	// place, and what failed in it is reported, when stage 1 is.
	if err := b.Prepare(ctx, finals[plan.Stage2]); err != nil {
		return none, err
	}
	if err := s.stage(ctx, b, p, plan.Stage1, tx.InstallOps); err != nil {
		return none, err
	}
	if err := s.stage(ctx, b, p, plan.Stage2, tx.InstallWheel); err != nil {
		return none, err
	}
	step := s.Progress.Start(plan.StageInstall, "generation", 0)
	r, err := tx.Commit(ctx)
	if err != nil {
		step.Fail(err)
		return none, err
	}
	step.Done(fmt.Sprintf("%d, switched", r.Generation))
	return r, nil
}

// withState says what the failure left behind.
func withState(err error, state string) error {
	if p, ok := errors.AsType[*report.Problem](err); ok && p.State == "" {
		p.State = state
		return err
	}
	return err
}
