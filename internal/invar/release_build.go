package invar

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/invar-ops/invar/internal/build"
	"github.com/invar-ops/invar/internal/cannenv"
	"github.com/invar-ops/invar/internal/doctor"
	"github.com/invar-ops/invar/internal/extwheel"
	"github.com/invar-ops/invar/internal/fetch"
	"github.com/invar-ops/invar/internal/install"
	"github.com/invar-ops/invar/internal/oppkg"
	"github.com/invar-ops/invar/internal/opsource"
	"github.com/invar-ops/invar/internal/pins"
	"github.com/invar-ops/invar/internal/plan"
	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/run"
	"github.com/invar-ops/invar/internal/runpkg"
	"github.com/invar-ops/invar/internal/store"
	"github.com/invar-ops/invar/internal/target"
	"github.com/invar-ops/invar/internal/toolchain"
	"github.com/invar-ops/invar/internal/vllmascend"
	"github.com/invar-ops/invar/scripts"
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

// bring fetches both files, then says of everything that nobody has accepted
// that it is so: whoever has to compare two digests does it once.
func (b *release) bring(ctx context.Context) error {
	b.files = map[string]fetch.File{}
	var unknown []error
	for _, one := range []struct {
		stage string
		from  plan.Origin
	}{{plan.Stage1, b.r.Ops}, {plan.Stage2, b.r.Extension}} {
		if one.from.Tree != "" {
			continue
		}
		f, err := b.fetch(ctx, one.stage, one.from)
		if f.Path == "" && err != nil {
			return alongside(unknown, err)
		}
		b.files[one.from.Name] = f
		if err != nil {
			unknown = append(unknown, err)
		}
	}
	switch len(unknown) {
	case 0:
		return nil
	case 1:
		return unknown[0]
	}
	var got, flags []string
	for _, f := range b.files {
		got, flags = append(got, f.Name+" sha256:"+f.SHA256), append(flags, "--accept-digest sha256:"+f.SHA256)
	}
	slices.Sort(got)
	slices.Sort(flags)
	p := report.Problemf(report.Unmet, "nobody has accepted the content of %d files", len(got)).
		WithWant("digests that invar, a lock file or you have accepted", strings.Join(got, "; "))
	p.State = "nothing was changed; the files are in the cache"
	return p.WithHint("compare the digests with those of the publisher, then pass %s; %s remembers them", strings.Join(flags, " "), pins.LockName)
}

// alongside is the failure of one file, said together with what nobody has
// accepted of those before it: that has to be settled in any case.
func alongside(unknown []error, err error) error {
	if len(unknown) == 0 {
		return err
	}
	if p, ok := errors.AsType[*report.Problem](unknown[0]); ok {
		p.State = strings.TrimPrefix(p.State+"; ", "; ") + "and then: " + err.Error()
		return p
	}
	return errors.Join(unknown[0], err)
}

// fetch brings one released file and checks that its content is accepted. A
// file without a path was not fetched.
func (b *release) fetch(ctx context.Context, stage string, o plan.Origin) (fetch.File, error) {
	f, err := fetch.Get(ctx, fetch.Item{Name: o.Name, URLs: o.URLs, Pins: o.Pins, Size: o.Size}, fetch.Options{
		Cache: b.Cache(), Mirrors: b.o.Release.Mirrors, Offline: b.o.Offline, Env: b.Env,
		CAFiles: b.o.Release.CAFiles, Stage: stage, Progress: b.Progress,
	})
	if err != nil {
		if p, ok := errors.AsType[*report.Problem](err); ok && (p.Code == 0 || p.Code == report.Failed || p.Code == report.CheckFailed) {
			p.Code = report.BuildFailed
		}
		return f, err
	}
	fresh, err := b.trust.Check(o.Name, f.SHA256, f.From)
	if err != nil {
		return f, err
	}
	if fresh {
		b.fresh = append(b.fresh, pins.Locked{Name: o.Name, SHA256: f.SHA256, Size: f.Size, From: origin(f)})
	}
	return f, nil
}

// origin is the address that the content of a file came from, as a lock and a
// receipt remember it; a path of one machine says nothing to others.
func origin(f fetch.File) string {
	switch {
	case strings.Contains(f.From, "://"):
		return f.From
	case f.From == fetch.FromCache:
		return "the cache"
	}
	return "a local file"
}

// remember writes what was accepted now into the lock.
func (b *release) remember() error {
	if len(b.fresh) == 0 {
		return nil
	}
	lock := b.trust.Lock
	for _, f := range b.fresh {
		lock, _ = lock.Add(f)
	}
	b.Progress.Note(fmt.Sprintf("lock      %s remembers %d accepted files", b.r.Lock, len(b.fresh)))
	return lock.Write(b.r.Lock)
}

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

// installOps puts the operators to their place in the new generation.
func (b *release) installOps(ctx context.Context, tx *install.Tx, ops operators, ext extension) error {
	step := b.Progress.Start(plan.Stage1, "operators of "+ops.pkg.Vendor, 0)
	how, err := b.putOps(ctx, tx, ops)
	if err != nil {
		step.Fail(err)
		return err
	}
	known := b.trust.Sources.RepairsOf(b.r.Version)
	fixed, err := oppkg.Repair(tx.OpsDir(), ops.pkg.Vendor, b.r.CANN.Opp, known, b.r.Repair)
	if err != nil {
		step.Fail(err)
		return err
	}
	note := install.Release{
		Vendor: ops.pkg.Vendor, Version: b.r.Version, SoC: b.r.SoC, CANN: b.r.CANN.CANN.Dir, CANNVersion: b.r.CANN.CANN.Version.String(),
		Compiled: ops.pkg.CANN, Ops: ops.file.From, Extension: ext.from, Installer: how, IntoCANN: b.r.IntoCANN,
		VLLM: b.vllm, Environment: b.vars, Digest: b.r.CANN.Digest,
	}
	if ops.file.Cached {
		note.Ops = origin(ops.file)
	}
	for _, f := range fixed {
		if f.Done {
			note.Repaired = append(note.Repaired, f.Link)
		}
	}
	if err := tx.AdoptOps(ctx, ops.file.Path, ops.file.Name, note); err != nil {
		step.Fail(err)
		return err
	}
	step.Done("installed by " + how)
	for _, f := range fixed {
		if f.Done {
			b.Progress.Note(fmt.Sprintf("repair    %s -> %s, since %s", f.Link, f.To, f.Why))
		} else {
			b.Progress.Note(fmt.Sprintf("repair    not done: %s -> %s, needed since %s; --repair makes the link", f.Link, f.To, f.Why))
		}
	}
	return nil
}

// putOps runs the package's own script, or copies what it would copy. It says how.
func (b *release) putOps(ctx context.Context, tx *install.Tx, ops operators) (string, error) {
	if b.r.Installer == "copy" {
		if err := ops.pkg.Copy(tx.OpsDir(), b.p.Arch); err != nil {
			return "", store.Explain(err, "prefix "+b.Prefix)
		}
		return "a copy of its files", oppkg.Whole(tx.OpsDir(), ops.pkg.Vendor)
	}
	scratch := filepath.Join(b.work, "installer")
	if err := os.Mkdir(scratch, 0o755); err != nil {
		return "", err
	}
	log := b.log("stage1")
	ran, err := ops.pkg.Install(ctx, oppkg.Script{
		Runner: b.Runner, Name: ops.script, To: tx.OpsDir(), Scratch: scratch, Log: log, Watch: []string{filepath.Join(b.r.CANN.Opp, "vendors")},
	})
	if err != nil {
		b.diagnose(err, log)
		return "", err
	}
	how := "its own script"
	switch {
	case ran.Confined.Files && ran.Confined.Network:
		how += ", confined to its folder and without network"
	case ran.Confined.Files:
		how += ", confined to its folder"
	case ran.Confined.Network:
		how += ", without network"
	}
	return how, nil
}

// installWheel builds the wheel, or takes the one that the store has of the
// same inputs, and unpacks it beside the operators.
func (b *release) installWheel(ctx context.Context, tx *install.Tx, ops operators, ext extension) error {
	step := b.Progress.Start(plan.Stage2, "wheel:", -1)
	obj, path, cached, err := b.wheel(ctx, ext)
	if err == nil {
		err = tx.InstallWheel(ctx, path)
	}
	if err == nil {
		err = b.hook(tx, ops.pkg.Vendor)
	}
	if err != nil {
		step.Fail(err)
		return err
	}
	text := fmt.Sprintf("%s, %s, sha256 %s", obj.Name, kilo(obj.Size), obj.SHA256[:12])
	if cached {
		step.Skip(text + " (unchanged)")
		return nil
	}
	step.Done(text)
	return nil
}

// hook is the module that names this vendor whenever Python starts.
func (b *release) hook(tx *install.Tx, vendor string) error {
	text, err := fs.ReadFile(scripts.FS, scripts.Hook)
	if err != nil {
		return err
	}
	where := "ops/" + b.p.Target + "/vendors/" + vendor
	return tx.PutStartup([]byte(strings.ReplaceAll(string(text), "@VENDOR@", where)))
}

func (b *release) wheel(ctx context.Context, ext extension) (obj store.Object, path string, cached bool, err error) {
	st, err := store.Open(b.Prefix)
	if err != nil {
		return obj, "", false, err
	}
	s, ok := b.p.Step("stage2/wheel")
	if !ok {
		return obj, "", false, fmt.Errorf("the plan has no wheel")
	}
	a, why, err := st.Lookup(ctx, s.Fingerprint)
	if err != nil {
		return obj, "", false, err
	}
	if why == "" {
		for _, obj := range a.Outputs {
			to := filepath.Join(b.work, obj.Name)
			return obj, to, true, copyTo(st.Path(obj.SHA256), to)
		}
	}
	log := b.log("stage2")
	scratch := filepath.Join(b.work, "stage2")
	if err := os.Mkdir(scratch, 0o755); err != nil {
		return obj, "", false, err
	}
	env := b.env
	if b.r.SoC != "" {
		env = run.Setenv(env, "SOC_VERSION", b.r.SoC)
	}
	t, err := target.Find(b.p.Target)
	if err != nil {
		return obj, "", false, err
	}
	path, err = extwheel.Build{
		Runner: b.Runner, Python: b.p.Python, Project: ext.project, Scratch: scratch, Env: env, Package: t.Stage2.Package,
		Arch: b.p.Arch, Jobs: b.jobs, Offline: b.o.Offline, Log: log, Note: b.Progress.Note,
	}.Make(ctx)
	if err != nil {
		b.diagnose(err, log)
		return obj, "", false, err
	}
	if obj, err = st.Put(ctx, path); err != nil {
		return obj, "", false, err
	}
	return obj, path, false, st.Record(store.Action{
		Fingerprint: s.Fingerprint, Step: s.ID, Made: time.Now().UTC(), Outputs: map[string]store.Object{"wheel": obj},
	})
}

func copyTo(from, to string) error {
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, b, 0o644)
}
