package cannenv

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/run"
)

// A Var is one variable that the scripts set.
type Var struct {
	Name  string `json:"name"`
	Value string `json:"value"` // of a search path: what was put in front
	Path  bool   `json:"path"`  // a search path, to be joined with what is there
}

// searchPaths are the variables whose entries add up; any other is replaced.
var searchPaths = []string{
	"PATH", "LD_LIBRARY_PATH", "PYTHONPATH", "LIBRARY_PATH", "CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH",
	"CMAKE_PREFIX_PATH", "PKG_CONFIG_PATH", "MANPATH", "LD_PRELOAD", "ASCEND_CUSTOM_OPP_PATH",
}

// script sources the files with nounset off, since they use variables that may
// be unset, and without arguments of ours in their way. What they print is no result.
const script = `__invar_toolkit=$1 __invar_atb=$2
set -- 
set +eu
. "$__invar_toolkit" >&2 || exit 91
if [ -n "$__invar_atb" ]; then . "$__invar_atb" --cxx_abi=1 >&2 || exit 92; fi
exec env -0`

// start is the PATH that the scripts find; everything else is empty.
const start = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Capture runs the scripts of c in a clean bash and returns what they changed,
// sorted by name. torch from 2.7 on has the new C++ ABI only, and older ones
// are refused, so ATB is asked for that one.
func Capture(ctx context.Context, r run.Runner, c Choice, env []string) ([]Var, error) {
	if c.SetEnv == "" {
		return nil, report.Problemf(report.Unmet, "%s has no set_env.sh", c.CANN.Dir).
			WithWant("set_env.sh in it or beside it", "none").WithHint("reinstall the toolkit, or name another one with --cann")
	}
	before := []string{"PATH=" + start, "LC_ALL=C", "HOME=" + orRoot(run.Getenv(env, "HOME"))}
	res, err := r.Run(ctx, run.Cmd{
		Argv: []string{"bash", "--noprofile", "--norc", "-c", script, "invar", c.SetEnv, c.ATB},
		Dir:  "/", Env: before, Timeout: time.Minute,
	})
	if err != nil {
		if ctx.Err() != nil {
			return nil, err
		}
		return nil, failed(c, res, err)
	}
	vars := difference(before, strings.Split(string(res.Stdout), "\x00"))
	if !slices.ContainsFunc(vars, func(v Var) bool { return v.Name == "ASCEND_HOME_PATH" || v.Name == "ASCEND_TOOLKIT_HOME" }) {
		return nil, report.Problemf(report.Unmet, "%s sets no ASCEND_HOME_PATH", c.SetEnv).
			WithWant("a set_env.sh of the toolkit", "another script").WithHint("reinstall the toolkit, or name another one with --cann")
	}
	return vars, nil
}

func orRoot(home string) string {
	if home == "" {
		return "/"
	}
	return home
}

func failed(c Choice, res run.Result, err error) error {
	which := c.SetEnv
	if res.Code == 92 {
		which = c.ATB
	}
	if run.NotFound(err) {
		return report.Problemf(report.Unmet, "set_env.sh needs bash: %w", err).WithHint("apt-get install bash   (apk add bash)")
	}
	re, ok := errors.AsType[*run.Error](err)
	p := report.Problemf(report.Unmet, "%s cannot be sourced: %w", which, err).
		WithHint("try it: bash -c '. %s'", which)
	if ok {
		p.Tail = re.Tail(8)
	}
	return p
}

// shellOwn are variables that every bash sets for itself.
var shellOwn = []string{"PWD", "OLDPWD", "SHLVL", "_"}

func difference(before, after []string) []Var {
	var out []Var
	for _, kv := range after {
		name, value, ok := strings.Cut(kv, "=")
		if !ok || slices.Contains(shellOwn, name) {
			continue
		}
		old := run.Getenv(before, name)
		switch {
		case slices.Contains(searchPaths, name):
			var added []string
			had := strings.Split(old, ":")
			for e := range strings.SplitSeq(value, ":") {
				if e != "" && !slices.Contains(had, e) && !slices.Contains(added, e) {
					added = append(added, e)
				}
			}
			if len(added) > 0 {
				out = append(out, Var{name, strings.Join(added, ":"), true})
			}
		case value != old:
			out = append(out, Var{name, value, false})
		}
	}
	slices.SortFunc(out, func(a, b Var) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// Apply returns env after vars, as if it had been sourced there: entries of
// search paths come in front, none is empty and none is there twice.
func Apply(env []string, vars []Var) []string {
	for _, v := range vars {
		value := v.Value
		if v.Path {
			value = Join(value, run.Getenv(env, v.Name))
		}
		env = run.Setenv(env, v.Name, value)
	}
	return env
}

// Join puts the entries of search paths one after the other, without empty
// ones (which would mean the current folder) and repetitions.
func Join(paths ...string) string {
	var out []string
	for _, p := range paths {
		for e := range strings.SplitSeq(p, ":") {
			if e != "" && !slices.Contains(out, e) {
				out = append(out, e)
			}
		}
	}
	return strings.Join(out, ":")
}

// Driverless are the settings for a machine without an NPU driver: torch does
// not load torch_npu by itself, and a library to link to stands in for the
// driver's. They come last, so that a real driver wins.
func (c Choice) Driverless(env []string) []string {
	if c.Driver != "" || !c.Found() {
		return env
	}
	env = run.Setenv(env, "TORCH_DEVICE_BACKEND_AUTOLOAD", "0")
	if c.Devlib != "" {
		env = run.Setenv(env, "LD_LIBRARY_PATH", Join(run.Getenv(env, "LD_LIBRARY_PATH"), c.Devlib))
	}
	return env
}
