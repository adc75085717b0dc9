package invar

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/invar-ops/invar/internal/cannenv"
	"github.com/invar-ops/invar/internal/doctor"
	"github.com/invar-ops/invar/internal/fetch"
	"github.com/invar-ops/invar/internal/install"
	"github.com/invar-ops/invar/internal/oppkg"
	"github.com/invar-ops/invar/internal/pins"
	"github.com/invar-ops/invar/internal/plan"
	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/run"
	"github.com/invar-ops/invar/internal/store"
	"github.com/invar-ops/invar/internal/target"
	"github.com/invar-ops/invar/internal/toolchain"
	"github.com/invar-ops/invar/internal/vllmascend"
)

// A release is one build of released operators under way.
type release struct {
	Session
	p     plan.Plan
	r     plan.Release
	o     Options
	work  string // scratch folder of this build
	vars  []cannenv.Var
	env   []string // of the caller, after CANN's scripts
	trust pins.Trust
	files map[string]fetch.File // that were fetched, by name
	fresh []pins.Locked         // content that was accepted now
	jobs  int
}

// installRelease brings both artifacts, judges them, and installs them as one
// transaction: the wheel is built when the operators are in place. Whatever is
// refused is refused before the transaction begins.
func (s Session) installRelease(ctx context.Context, prefix *install.Prefix, p plan.Plan, o Options) (install.Receipt, error) {
	var none install.Receipt
	b := &release{Session: s, p: p, r: *p.Release, o: o}
	if err := b.prepare(ctx); err != nil {
		return none, err
	}
	defer func() { _ = os.RemoveAll(b.work) }()
	if err := b.bring(ctx); err != nil {
		return none, err
	}
	ops, err := b.operators(ctx)
	if err != nil {
		return none, err
	}
	if err := b.contestKnown(ops); err != nil {
		return none, err
	}
	ext, err := b.extension(ctx)
	if err != nil {
		return none, err
	}
	if err := b.remember(); err != nil {
		return none, err
	}
	req := install.Request{
		Bundle: install.Bundle{Target: p.Target, Flavour: p.Flavour, Fingerprint: p.Fingerprint, Contract: p.Contract},
		Python: p.Python, Replace: o.Replace, TakeOver: o.TakeOver, Env: s.Env, Invar: s.Version, Startup: true,
	}
	if b.r.IntoCANN {
		req.Vendor = &install.Vendor{Opp: b.r.CANN.Opp, Name: ops.pkg.Vendor}
	}
	tx, err := prefix.Begin(ctx, req)
	if err != nil {
		return none, err
	}
	defer tx.Abort() // does nothing after Commit
	if err := b.installOps(ctx, tx, ops, ext); err != nil {
		return none, err
	}
	if err := b.installWheel(ctx, tx, ops, ext); err != nil {
		return none, err
	}
	if err := b.contestCalled(ctx, filepath.Join(tx.OpsDir(), "vendors", ops.pkg.Vendor), tx.SiteDir()); err != nil {
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

// prepare checks the host and captures CANN's environment.
func (b *release) prepare(ctx context.Context) error {
	vars, err := cannenv.Capture(ctx, b.Runner, b.r.CANN, b.Env)
	if err != nil {
		return err
	}
	b.vars = vars
	b.env = run.Setenv(b.r.CANN.Driverless(cannenv.Apply(b.Env, vars)), vllmascend.InBuild, "1")
	b.note(vars)
	if err := b.preflight(ctx); err != nil {
		return err
	}
	if b.trust, _, err = b.Session.trust(b.p.Target, b.o.Release); err != nil {
		return err
	}
	for _, d := range []string{filepath.Join(b.Prefix, "work"), b.LogDir()} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return store.Explain(err, d)
		}
	}
	// The prefix is there now, and can remember which compiler is which.
	_, _ = toolchain.Find(ctx, b.Env, b.Runner, b.toolCache())
	b.work, err = os.MkdirTemp(filepath.Join(b.Prefix, "work"), "release-")
	return store.Explain(err, "prefix "+b.Prefix)
}

// note shows what the scripts changed, in one line.
func (b *release) note(vars []cannenv.Var) {
	var names []string
	for _, v := range vars {
		names = append(names, v.Name)
	}
	text := fmt.Sprintf("environ   %s sets %s", b.r.CANN.SetEnv, strings.Join(names, ", "))
	if b.r.CANN.ATB != "" {
		text += "; with " + b.r.CANN.ATB + " --cxx_abi=1"
	}
	if b.r.CANN.Driver == "" {
		text += "; no NPU driver: devlib, TORCH_DEVICE_BACKEND_AUTOLOAD=0"
	}
	b.Progress.Note(text)
}

// preflight asks the doctor about everything that a build or an installation
// needs. Versions that do not belong together are let pass when the user says so.
func (b *release) preflight(ctx context.Context) error {
	t, err := target.Find(b.p.Target)
	if err != nil {
		return err
	}
	res, err := doctor.Run(ctx, t, doctor.Options{Root: "/", Python: b.p.Python.Exe, Prefix: b.Prefix, Env: b.env, Runner: b.Runner})
	if err != nil {
		return err
	}
	// Memory a job is a fact of the target: these headers take more than others.
	if b.jobs = b.Session.jobs(ctx, b.o, b.p); b.o.Jobs == 0 && res.Jobs != nil {
		b.jobs = res.Jobs.Recommended
	}
	var all []report.Requirement
	bad := false
	for _, f := range res.Findings {
		if f.For != "build" && f.For != "install" {
			continue
		}
		if b.r.Skew && f.Group == "versions" {
			continue
		}
		if f.OK = f.Status != report.Fail; !f.OK && f.Group == "versions" {
			f.Hint += "; --allow-version-skew goes on all the same"
		}
		bad = bad || !f.OK
		all = append(all, f.Requirement)
	}
	if bad {
		return &report.UnmetError{Target: b.p.Target, All: all}
	}
	return nil
}

// An operators is the extracted and judged run package.
type operators struct {
	file   fetch.File
	pkg    oppkg.Package
	script string
}
