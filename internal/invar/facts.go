package invar

import (
	"context"

	"github.com/invar-ops/invar/internal/plan"
	"github.com/invar-ops/invar/internal/python"
	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/run"
	"github.com/invar-ops/invar/internal/target"
	"github.com/invar-ops/invar/internal/toolchain"
	"github.com/invar-ops/invar/internal/version"
	"github.com/invar-ops/invar/targets"
)

// gather collects what planning t needs. It starts a process only where no
// file tells: an unknown compiler, a launcher script in the place of a Python.
func (s Session) gather(ctx context.Context, t target.Target, arch string, o Options) (plan.Facts, error) {
	f := plan.Facts{Arch: arch, Packages: map[string]string{}}
	po := python.Options{Exe: o.Python, Env: s.Env, Home: s.Prefix, Runner: s.Runner}
	var err error
	if f.Python, f.Candidates, err = s.choosePython(ctx, po, t, o); err != nil {
		return f, err
	}
	if !f.Python.HasTorch() && len(t.Python.Install) > 0 {
		if err := s.gatherBase(ctx, &f, po, t, o); err != nil {
			return f, err
		}
	}
	f.Compiler, f.CompilerReasons = toolchain.Find(ctx, s.Env, s.Runner, s.toolCache())
	for _, n := range t.Requires {
		if d, ok := f.Python.Lookup(n.Item); n.Kind == "package" && ok {
			f.Packages[n.Item] = d.Version
		}
	}
	if o.Wheelhouse != "" {
		f.Wheelhouse = python.OpenWheelhouse(o.Wheelhouse)
	}
	if err := s.gatherRelease(ctx, t, &f, o); err != nil {
		return f, err
	}
	if f.Sources, f.Includes, err = sources(targets.FS); err != nil {
		return f, err
	}
	return f, s.gatherCUDA(ctx, t, &f, o)
}

// gatherBase finds what an environment can be made from: the interpreter that
// --python or VIRTUAL_ENV names, else one on PATH. An environment that an
// earlier build made from it is taken as it is: making it again would remove
// what is installed in it.
func (s Session) gatherBase(ctx context.Context, f *plan.Facts, po python.Options, t target.Target, o Options) error {
	f.HasUV = run.Has("uv", s.Env)
	if f.Base = f.Python; f.Base.Exe == "" {
		var minor int
		if v, err := version.Parse(version.PEP440, t.Python.Minimum); err == nil {
			minor = int(v.Minor())
		}
		base, seen, err := python.Base(ctx, po, minor)
		if err != nil {
			return err
		}
		f.Base, f.Candidates = base, append(f.Candidates, seen...)
	}
	torch := t.Python.Install[0]
	if o.Torch != "" {
		torch = o.Torch
	}
	if own, ok := python.OwnAt(plan.EnvironmentDir(s.Prefix, f.Base, torch)); ok {
		if f.Base.Why != "" {
			own.Why += "; " + f.Base.Exe + " (" + f.Base.Why + ") has no torch"
		}
		f.Python = own
	}
	return nil
}

// choosePython finds the environment. --torch asks for a certain one, so only
// an own environment of that very name will do.
func (s Session) choosePython(ctx context.Context, po python.Options, t target.Target, o Options) (python.Python, []python.Candidate, error) {
	if o.Torch == "" {
		return python.Find(ctx, po)
	}
	if o.Python != "" {
		return python.Python{}, nil, report.Usagef("--torch and --python exclude each other: --torch makes an environment of invar's own")
	}
	if len(t.Python.Install) == 0 {
		return python.Python{}, nil, report.Usagef("--torch: %s uses the Python that is there", t.Name)
	}
	base, seen, err := python.Base(ctx, po, 0)
	if err != nil || base.Exe == "" {
		return python.Python{}, seen, err
	}
	if p, ok := python.OwnAt(plan.EnvironmentDir(s.Prefix, base, o.Torch)); ok {
		return p, seen, nil
	}
	return python.Python{}, seen, nil
}
