package invar

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/invar-ops/invar/internal/build"
	"github.com/invar-ops/invar/internal/cuda"
	"github.com/invar-ops/invar/internal/plan"
	"github.com/invar-ops/invar/internal/python"
	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/run"
	"github.com/invar-ops/invar/internal/target"
)

// CUDAOptions are the user's choices about the GPU part of a target.
type CUDAOptions struct {
	Arch           string // list of architectures
	Home           string // toolkit
	InstallToolkit bool   // make one of invar's own
}

// gatherCUDA finds toolkit, architectures and devices for a target with a GPU part.
func (s Session) gatherCUDA(ctx context.Context, t target.Target, f *plan.Facts, o Options) error {
	if t.CUDA == nil {
		if o.CUDA != (CUDAOptions{}) {
			return report.Usagef("--arch, --cuda-home and --install-toolkit are for the target cuda, not %s", t.Name)
		}
		return nil
	}
	if o.CUDA.Home != "" && o.CUDA.InstallToolkit {
		return report.Usagef("--cuda-home and --install-toolkit exclude each other: one toolkit is used")
	}
	g := &plan.CUDAFacts{Torch: f.Python.TorchCUDA()}
	f.CUDA = g
	if err := s.recipe(ctx, t, f, o); err != nil {
		return err
	}
	var err error
	g.Toolkit, g.Seen, err = cuda.Find(ctx, cuda.Options{
		Home: o.CUDA.Home, Env: s.Env, Python: f.Python, Own: cuda.Own(s.Prefix), Only: o.CUDA.InstallToolkit,
		Torch: g.Torch, Runner: s.Runner, Cache: s.nvccCache(),
	})
	if err != nil {
		return err
	}
	if err := s.devices(ctx, g, o); err != nil {
		return err
	}
	chooseArches(g, o, s.Env)
	return nil
}

func (s Session) nvccCache() string { return filepath.Join(s.Prefix, "cache", "nvcc.json") }

// recipe is the toolkit that --install-toolkit makes, unless it is there.
func (s Session) recipe(ctx context.Context, t target.Target, f *plan.Facts, o Options) error {
	if !o.CUDA.InstallToolkit || f.CUDA.Torch == "" {
		return nil // without a torch for CUDA there is nothing to match; the requirements say so
	}
	base := f.Python
	if base.Exe == "" {
		var err error
		if base, _, err = python.Base(ctx, python.Options{Env: s.Env, Runner: s.Runner}, 0); err != nil {
			return err
		}
	}
	r, err := cuda.NewRecipe(s.Prefix, f.CUDA.Torch, base, run.Has("uv", s.Env))
	if err != nil {
		return err
	}
	r.Wheelhouse, r.Offline = o.Wheelhouse, o.Offline
	if !r.Ready() {
		f.CUDA.Recipe = &r
	}
	return nil
}

// devices asks for the GPUs of this host and their driver.
func (s Session) devices(ctx context.Context, g *plan.CUDAFacts, o Options) error {
	facts, err := s.detect(ctx, "")
	if err != nil {
		return err
	}
	g.Devices, g.Driver, g.DriverCUDA = cuda.Devices(facts)
	return nil
}

// chooseArches decides what is compiled for: what the command line says, else
// the devices of this host, else TORCH_CUDA_ARCH_LIST. There is no default.
func chooseArches(g *plan.CUDAFacts, o Options, env []string) {
	list := run.Getenv(env, "TORCH_CUDA_ARCH_LIST")
	switch {
	case o.CUDA.Arch != "":
		take(g, o.CUDA.Arch, "--arch")
	case o.SoC != "":
		take(g, o.SoC, "--soc")
	case len(g.Devices) > 0:
		var own []string
		for _, d := range g.Devices {
			own = append(own, fmt.Sprintf("%d.%d", d/10, d%10))
		}
		take(g, strings.Join(own, ","), "the GPUs of this host")
		if list != "" {
			g.Why += "; TORCH_CUDA_ARCH_LIST=" + list + " is for hosts without one, --arch overrides"
		}
	case strings.TrimSpace(list) != "":
		take(g, list, "TORCH_CUDA_ARCH_LIST")
	default:
		g.Problem = "no GPU was found here, and neither --arch nor TORCH_CUDA_ARCH_LIST is set"
		g.Hint = "name the GPUs that it is for: invar build cuda --arch 9.0"
	}
}

func take(g *plan.CUDAFacts, list, why string) {
	arches, err := cuda.ParseList(list)
	switch {
	case err != nil:
		g.Problem, g.Hint = fmt.Sprintf("%v, in %s %s", err, why, list), "invar build cuda --arch 9.0"
		if p, ok := errors.AsType[*report.Problem](err); ok && p.Want != "" {
			g.Hint += "   (" + p.Want + ")"
		}
	case len(arches) == 0:
		g.Problem, g.Hint = "the list in "+why+" is empty", "invar build cuda --arch 9.0"
	default:
		g.Arches, g.Why = arches, why
	}
}

// toolkit makes the toolkit that the plan lacks and plans again with it.
func (s Session) toolkit(ctx context.Context, p plan.Plan, o Options) (plan.Plan, error) {
	if p.CUDA == nil || p.CUDA.Recipe == nil {
		return p, nil
	}
	r := *p.CUDA.Recipe
	if err := os.MkdirAll(s.LogDir(), 0o755); err != nil {
		return p, err
	}
	log := filepath.Join(s.LogDir(), "toolkit-"+r.Minor+".log")
	step := s.Progress.Start(plan.StageToolkit, "CUDA "+r.Minor+" from compiler wheels", -1)
	if err := cuda.Make(ctx, r, python.Watched(s.Runner, step), s.Env, log); err != nil {
		step.Fail(err)
		if pr, ok := errors.AsType[*report.Problem](err); ok && pr.Log != "" {
			build.Diagnose(pr, pr.Log)
		}
		return p, err
	}
	step.Done(r.Home())
	return s.Plan(ctx, o)
}

// shim makes the folder of links by which other builds can use the toolkit.
func (s Session) shim(p plan.Plan) error {
	c := p.CUDA
	if c == nil || c.Shim == "" {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(c.Shim), 0o755); err != nil {
		return err
	}
	if err := c.Kit.MakeShim(c.Shim); err != nil {
		return err
	}
	s.Progress.Note(fmt.Sprintf("toolkit   %s: %s; other builds can use export CUDA_HOME=%s", c.Toolkit, c.ShimWhy, c.Shim))
	return nil
}
