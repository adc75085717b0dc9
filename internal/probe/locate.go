package probe

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/invar-ops/invar/internal/install"
	"github.com/invar-ops/invar/internal/python"
	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/run"
	"github.com/invar-ops/invar/internal/target"
)

// locate finds the receipt of the installation that is meant.
func (p *prober) locate(ctx context.Context) (install.Receipt, error) {
	if p.outside() && p.Prefix == "" {
		var err error
		if p.Prefix, err = p.findPrefix(ctx); err != nil {
			return install.Receipt{}, err
		}
	}
	o := p.Options
	prefix, err := install.OpenIn(o.Root, o.Prefix)
	if err != nil {
		return install.Receipt{}, err
	}
	id, err := environment(ctx, prefix, o)
	if err != nil {
		return install.Receipt{}, err
	}
	r, err := prefix.Current(id)
	if err == nil && p.outside() && p.Root.Real(r.Prefix) != p.Root.Real(o.Prefix) {
		return r, report.Problemf(report.CheckFailed, "the prefix was moved: Python looks for the operators where they were built").
			WithWant(r.Prefix, o.Prefix).WithHint("copy it to the path where it was built: COPY --from=BUILD %s %s, and %s", r.Prefix, r.Prefix, r.Hook.Path)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return r, nothing(prefix, o.Target, err)
	}
	if err != nil {
		return r, report.Problemf(report.CheckFailed, "probe level 1 (files) failed: %w", err).
			WithHint("invar status shows what is there; invar build installs again")
	}
	if o.Target != "" && o.Target != r.Target {
		return r, report.Problemf(report.CheckFailed, "another target is installed for %s", r.Python.Exe).
			WithWant(o.Target, r.Target).WithHint("%s", buildHint(o.Target))
	}
	return r, nil
}

// environment is the id of the Python that is meant, by the rule of every
// command that looks at an installation: --python, else the only Python that
// the prefix serves, else VIRTUAL_ENV. It does not guess among several.
func environment(ctx context.Context, prefix *install.Prefix, o Options) (string, error) {
	name := o.Python
	if name == "" {
		ids, err := installed(prefix)
		if err != nil {
			return "", err
		}
		if len(ids) == 1 {
			return ids[0], nil
		}
		if name = run.Getenv(o.Env, "VIRTUAL_ENV"); name == "" && len(ids) > 1 {
			return "", report.Usagef("several Pythons are served from %s: %s", prefix.Dir, strings.Join(ids, ", ")).
				WithHint("name one with --python PATH, or with its id; invar status lists them")
		}
	}
	if name == "" {
		return "", nothing(prefix, o.Target, fmt.Errorf("nothing is installed in %s", prefix.Dir))
	}
	if id, ok, err := prefix.Match(name); ok || err != nil {
		return id, err
	}
	if !o.Root.Live() {
		ids, _ := installed(prefix)
		return "", report.Problemf(report.CheckFailed, "nothing is installed for %s in %s", name, prefix.Dir).
			WithWant(name, firstNonEmpty(strings.Join(ids, ", "), "no Python")).WithHint("name a Python by its path in the root, or by its id")
	}
	py, _, err := python.Find(ctx, python.Options{Exe: name, Env: o.Env, Home: o.Prefix, Runner: o.Runner})
	if err != nil {
		return "", err
	}
	return py.ID(), nil
}

// installed lists the environments of the prefix with a current generation.
func installed(prefix *install.Prefix) ([]string, error) {
	ids, err := prefix.IDs()
	if err != nil {
		return nil, err
	}
	var out []string
	for _, id := range ids {
		if _, err := prefix.Current(id); !errors.Is(err, fs.ErrNotExist) {
			out = append(out, id)
		}
	}
	return out, nil
}

func nothing(prefix *install.Prefix, name string, err error) error {
	return report.Problemf(report.CheckFailed, "%w", err).
		WithWant("a receipt below "+prefix.Dir+"/env", "none").
		WithHint("%s --prefix %s; invar status lists what is installed", buildHint(name), run.Quote(prefix.Dir))
}

// buildHint is the command that makes target name, or, where this version does
// not make it, the one that says what is missing.
func buildHint(name string) string {
	if name == "" {
		return "invar build"
	}
	if t, err := target.Find(name); err != nil || !t.Builds() {
		return "invar plan " + name
	}
	return "invar build " + name
}
