package invar

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/invar-ops/invar/internal/build"
	"github.com/invar-ops/invar/internal/extwheel"
	"github.com/invar-ops/invar/internal/fetch"
	"github.com/invar-ops/invar/internal/oppkg"
	"github.com/invar-ops/invar/internal/opsource"
	"github.com/invar-ops/invar/internal/plan"
	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/runpkg"
	"github.com/invar-ops/invar/internal/store"
	"github.com/invar-ops/invar/internal/target"
)

// operators brings or builds the run package, opens it without running any of
// it, and refuses one that is not for this host.
func (b *release) operators(ctx context.Context) (operators, error) {
	ops := operators{file: b.files[b.r.Ops.Name]}
	if b.r.Ops.Tree != "" {
		var err error
		if ops.file, err = b.buildOps(ctx); err != nil {
			return ops, err
		}
	}
	step := b.Progress.Start(plan.Stage1, ops.file.Name, ops.file.Size)
	if err := b.open(ctx, &ops, step); err != nil {
		step.Fail(err)
		return ops, err
	}
	step.Done(fmt.Sprintf("sha256 %s: vendor %s, kernels for %s, %s", ops.file.SHA256[:12], ops.pkg.Vendor, strings.Join(ops.pkg.Kernels, ", "), ops.pkg.Arch))
	return ops, nil
}

func (b *release) open(ctx context.Context, ops *operators, step report.Step) error {
	f, err := os.Open(ops.file.Path)
	if err != nil {
		return err
	}
	defer f.Close()
	pkg, err := runpkg.OpenReader(ops.file.Name, f, ops.file.Size)
	if err != nil {
		return notForUs(err)
	}
	dir := filepath.Join(b.work, "ops")
	if _, err := pkg.Extract(ctx, dir, runpkg.Options{Progress: step.Add}); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return notForUs(store.Explain(err, "prefix "+b.Prefix))
	}
	if ops.pkg, err = oppkg.Read(dir); err != nil {
		return err
	}
	ops.script = pkg.Script
	all := ops.pkg.Judge(oppkg.Want{
		Target: b.p.Target, Kernels: b.r.Kernels, Arch: b.p.Arch, CANN: b.r.CANN.CANN.Version.String(), Vendors: b.r.Vendors, Skew: b.r.Skew,
	})
	if slices.ContainsFunc(all, func(r report.Requirement) bool { return !r.OK }) {
		return &report.UnmetError{Target: b.p.Target, All: all}
	}
	return nil
}

// notForUs makes the refusal of a file one of the build's first stage.
func notForUs(err error) error {
	if p, ok := errors.AsType[*report.Problem](err); ok && (p.Code == 0 || p.Code == report.Failed || p.Code == report.CheckFailed) {
		p.Code = report.BuildFailed
	}
	return err
}

// buildOps builds the run package from a source tree.
func (b *release) buildOps(ctx context.Context) (fetch.File, error) {
	step := b.Progress.Start(plan.Stage1, "operators from "+b.r.Ops.Tree+":", -1)
	scratch := filepath.Join(b.work, "opsource")
	if err := os.Mkdir(scratch, 0o755); err != nil {
		return fetch.File{}, err
	}
	log := b.log("stage1")
	path, err := opsource.Build{
		Runner: b.Runner, Tree: b.r.Ops.Tree, SoC: b.r.Kernels[0], Ops: b.r.Ops.Ops, ThirdParty: b.o.Release.ThirdParty,
		Scratch: scratch, Env: b.env, Jobs: b.jobs, Offline: b.o.Offline, Log: log, Note: b.Progress.Note,
	}.Make(ctx)
	if err != nil {
		step.Fail(err)
		b.diagnose(err, log)
		return fetch.File{}, err
	}
	sum, size, err := store.Digest(ctx, path)
	if err != nil {
		step.Fail(err)
		return fetch.File{}, err
	}
	f := fetch.File{Path: path, Name: filepath.Base(path), SHA256: sum, Size: size, From: b.r.Ops.Tree}
	step.Done(f.Name + ", " + kilo(size))
	return f, nil
}

func (b *release) log(stage string) string {
	return filepath.Join(b.LogDir(), stage+"-"+filepath.Base(b.work)+".log")
}

func (b *release) diagnose(err error, log string) {
	if p, ok := errors.AsType[*report.Problem](err); ok && p.Log != "" && p.Cause == "" {
		build.Diagnose(p, log)
	}
}

// An extension is the scratch copy of the wheel's sources.
type extension struct {
	project string
	from    string
}

// extension brings the sources of the wheel into the scratch folder.
func (b *release) extension(ctx context.Context) (extension, error) {
	o, dir := b.r.Extension, filepath.Join(b.work, "extension")
	e := extension{from: o.Tree}
	if o.Tree != "" {
		if err := extwheel.CopyTree(o.Tree, dir); err != nil {
			return e, store.Explain(err, "prefix "+b.Prefix)
		}
	} else {
		f := b.files[o.Name]
		if e.from = f.From; f.Cached {
			e.from = origin(f)
		}
		if err := extwheel.Unzip(ctx, f.Path, dir); err != nil {
			return e, err
		}
	}
	t, err := target.Find(b.p.Target)
	if err != nil {
		return e, err
	}
	e.project, err = extwheel.Project(dir, t.Stage2.Package)
	return e, err
}
