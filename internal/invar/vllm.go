package invar

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/invar-ops/invar/internal/build"
	"github.com/invar-ops/invar/internal/cannenv"
	"github.com/invar-ops/invar/internal/extwheel"
	"github.com/invar-ops/invar/internal/install"
	"github.com/invar-ops/invar/internal/plan"
	"github.com/invar-ops/invar/internal/python"
	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/store"
	"github.com/invar-ops/invar/internal/vllmascend"
)

// installVLLM does the source install of vllm-ascend that was asked for,
// outside every lock: pip takes minutes and changes what it likes. A tree that
// is installed already, as the receipt says, is left alone.
func (s Session) installVLLM(ctx context.Context, o Options) (*install.VLLMInstall, error) {
	dir := o.Release.InstallVLLM
	if dir == "" {
		return nil, nil
	}
	t, _, err := s.resolve(ctx, o)
	if err != nil {
		return nil, err
	}
	if t.Stage1.From != "package" {
		return nil, report.Usagef("--install-vllm-ascend: vllm-ascend runs on Ascend, not on %s", t.Name)
	}
	tree, err := vllmascend.Open(ctx, s.Runner, dir, s.Env)
	if err != nil {
		return nil, err
	}
	py, _, err := s.choosePython(ctx, python.Options{Exe: o.Python, Env: s.Env, Home: s.Prefix, Runner: s.Runner}, t, o)
	if err != nil {
		return nil, err
	}
	if py.Exe == "" {
		return nil, report.Problemf(report.Unmet, "no Python with torch was found").WithHint("pass --python with the one that vllm-ascend goes into")
	}
	v := &install.VLLMInstall{Dir: tree.Dir, Version: tree.Version, Editable: o.Release.Editable, Changes: []install.PipChange{}}
	if v.Digest, err = extwheel.Digest(ctx, tree.Dir, "_cann_ops_custom", "build_out", "output"); err != nil {
		return nil, err
	}
	if done := s.installedVLLM(py, *v); done != nil && !o.Force {
		return done, nil
	}
	soc, err := s.soc(t, o.SoC)
	if err != nil {
		return nil, err
	}
	choice, err := cannenv.Choose("/", o.Release.CANN, s.Env)
	if err != nil {
		return nil, err
	}
	if !choice.Found() {
		return nil, report.Problemf(report.Unmet, "no CANN was found").WithHint("install the CANN toolkit, or name it with --cann DIR")
	}
	vars, err := cannenv.Capture(ctx, s.Runner, choice, s.Env)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(s.LogDir(), 0o755); err != nil {
		return nil, store.Explain(err, s.LogDir())
	}
	step := s.Progress.Start("vllm", "vllm-ascend "+firstOf(tree.Version, "of unknown version")+" from "+tree.Dir+":", -1)
	v.Changes, err = vllmascend.Install{
		Runner: s.Runner, Python: py, Tree: tree, Editable: v.Editable, SoC: soc, Env: choice.Driverless(cannenv.Apply(s.Env, vars)),
		Jobs: s.jobs(ctx, o, plan.Plan{Target: t.Name}), Offline: o.Offline, Note: s.Progress.Note, Log: filepath.Join(s.LogDir(), "vllm-ascend-"+time.Now().UTC().Format("20060102-150405")+".log"),
	}.Run(ctx)
	if err != nil {
		step.Fail(err)
		if p, ok := errors.AsType[*report.Problem](err); ok && p.Log != "" {
			build.Diagnose(p, p.Log)
		}
		return nil, err
	}
	v.Back = vllmascend.Back(py, v.Changes)
	step.Done(firstOf(vllmascend.Text(v.Changes), "nothing changed"))
	return v, nil
}

// installedVLLM is what the current receipt says of the same sources.
func (s Session) installedVLLM(py python.Python, v install.VLLMInstall) *install.VLLMInstall {
	p, err := install.Open(s.Prefix)
	if err != nil {
		return nil
	}
	r, err := p.Current(py.ID())
	if err != nil || r.Release == nil || r.Release.VLLM == nil {
		return nil
	}
	old := r.Release.VLLM
	if _, there := py.Lookup(vllmascend.Dist); there && old.Dir == v.Dir && old.Digest == v.Digest && old.Editable == v.Editable {
		return old
	}
	return nil
}

// opsOfTree is the version of the operators that a tree of vllm-ascend names,
// "" without a tree. For an installed vllm-ascend the tree has to be its own.
func (s Session) opsOfTree(ctx context.Context, py python.Python, o ReleaseOptions) (string, error) {
	dir := firstOf(o.VLLMTree, o.InstallVLLM)
	if dir == "" {
		return "", nil
	}
	tree, err := vllmascend.Open(ctx, s.Runner, dir, s.Env)
	if err != nil {
		return "", err
	}
	if o.VLLMTree != "" {
		if err := tree.Match(py, o.Skew); err != nil {
			return "", err
		}
	}
	return tree.Ops, nil
}
