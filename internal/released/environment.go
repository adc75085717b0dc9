// Package released knows the environment that an installation of released
// operators runs in: that of its CANN, and its own vendor in front.
package released

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/invar-ops/invar/internal/cannenv"
	"github.com/invar-ops/invar/internal/install"
	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/rootfs"
	"github.com/invar-ops/invar/internal/run"
)

// An Environment is what has to be set for one installation.
type Environment struct {
	Choice cannenv.Choice `json:"cann"`
	Vars   []cannenv.Var  `json:"vars"` // sorted by name; search paths hold what goes in front
}

// Of is the environment of the installation r. cann names another CANN than
// the one that it was built with; "" is that one. No process is started while
// CANN's scripts are those that were captured at the build.
func Of(ctx context.Context, runner run.Runner, r install.Receipt, cann string, env []string) (Environment, error) {
	if r.Release == nil {
		return Environment{}, nil
	}
	if cann == "" {
		cann = r.Release.CANN
		if _, err := os.Stat(cann); err != nil {
			return Environment{}, report.Problemf(report.Unmet, "the CANN of this installation is gone").
				WithWant(cann, "no such folder").
				WithHint("name another one with --cann DIR, or build again: invar build %s", r.Target)
		}
	}
	c, err := cannenv.Choose("/", cann, env)
	if err != nil {
		return Environment{}, err
	}
	vars := r.Release.Environment
	if c.Digest != r.Release.Digest {
		if vars, err = cannenv.Capture(ctx, runner, c, env); err != nil {
			return Environment{}, err
		}
	}
	return Environment{Choice: c, Vars: vendor(r, vars)}, nil
}

// In is Of for an installation inside root, where nothing may be started: when
// CANN's scripts are not those that were captured, that is an error.
func In(root rootfs.Root, r install.Receipt, cann string, env []string) (Environment, error) {
	if r.Release == nil {
		return Environment{}, nil
	}
	if cann == "" {
		cann = r.Release.CANN
	}
	if !root.IsDir(cann) {
		return Environment{}, report.Problemf(report.CheckFailed, "the CANN of this installation is not in this root").
			WithWant(cann, "no such folder").
			WithHint("the operators were built with it; name another one in this root with --cann DIR")
	}
	c, err := cannenv.Choose(root.Dir(), cann, env)
	if err != nil {
		return Environment{}, err
	}
	if !c.SameScripts(r.Release.Digest) {
		return Environment{}, report.Problemf(report.Inconclusive, "what CANN's scripts set is not known: they are others than when this was installed").
			WithWant(r.Release.Digest, c.Digest+" of "+c.SetEnv).
			WithHint("they are started only inside this root: run invar probe there")
	}
	return Environment{Choice: c, Vars: vendor(r, r.Release.Environment)}, nil
}

// vendor puts the operators of r in front of what CANN's scripts set.
func vendor(r install.Receipt, vars []cannenv.Var) []cannenv.Var {
	dir := r.VendorDir()
	out := []cannenv.Var{{Name: "ASCEND_CUSTOM_OPP_PATH", Value: dir, Path: true}}
	lib := filepath.Join(dir, "op_api", "lib")
	placed := false
	for _, v := range vars {
		switch v.Name {
		case "ASCEND_CUSTOM_OPP_PATH":
			out[0].Value = cannenv.Join(dir, v.Value)
			continue
		case "LD_LIBRARY_PATH":
			v.Value, placed = cannenv.Join(lib, v.Value), true
		}
		out = append(out, v)
	}
	if !placed {
		out = append(out, cannenv.Var{Name: "LD_LIBRARY_PATH", Value: lib, Path: true})
	}
	return out
}

// Apply returns env with e set: the vendor of another generation of the same
// Python is taken out first.
func (e Environment) Apply(env []string, r install.Receipt) []string {
	if r.Release == nil {
		return env
	}
	gens := filepath.Dir(r.Dir()) + "/"
	for _, name := range []string{"ASCEND_CUSTOM_OPP_PATH", "LD_LIBRARY_PATH"} {
		var kept []string
		for p := range strings.SplitSeq(run.Getenv(env, name), ":") {
			if !strings.HasPrefix(p, gens) {
				kept = append(kept, p)
			}
		}
		env = run.Setenv(env, name, cannenv.Join(strings.Join(kept, ":")))
	}
	return e.Choice.Driverless(cannenv.Apply(env, e.Vars))
}

// Changes are the variables of after that differ from before, with their whole
// values, by name: what a shell has to export.
func Changes(before, after []string) []cannenv.Var {
	var out []cannenv.Var
	seen := map[string]bool{}
	for _, kv := range after {
		name, _, _ := strings.Cut(kv, "=")
		if seen[name] {
			continue
		}
		seen[name] = true
		if v := run.Getenv(after, name); v != run.Getenv(before, name) {
			out = append(out, cannenv.Var{Name: name, Value: v})
		}
	}
	return out
}
