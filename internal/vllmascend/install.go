package vllmascend

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/invar-ops/invar/internal/install"
	"github.com/invar-ops/invar/internal/python"
	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/run"
	"github.com/invar-ops/invar/internal/store"
)

// An Install is one source install of vllm-ascend by pip or uv. It runs outside
// every lock and transaction of invar: what it changes is recorded, and the way
// back is a command.
type Install struct {
	Runner   run.Runner
	Python   python.Python
	Tree     Tree
	Editable bool
	SoC      string   // SOC_VERSION: "ascend910b1"; "" lets setup.py ask npu-smi
	Env      []string // CANN's environment
	Jobs     int
	Offline  bool
	Log      string
	Note     func(string) // told what is taken out of the tree; nil is not told
}

// A Change is one distribution before and after.
type Change = install.PipChange

// Run installs the tree and says what changed. The tree's own batch-invariant
// step is switched off: invar's two stages follow.
func (i Install) Run(ctx context.Context) ([]Change, error) {
	argv, err := i.argv()
	if err != nil {
		return nil, err
	}
	gone, err := i.fresh()
	for _, g := range gone {
		if i.Note != nil {
			i.Note("tree      removed " + g)
		}
	}
	if err != nil {
		return nil, store.Explain(err, i.Tree.Dir)
	}
	scratch, err := os.MkdirTemp("", "invar-vllm-ascend-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	git, err := i.ownGit(scratch)
	if err != nil {
		return nil, store.Explain(err, scratch)
	}
	before := dists(i.Python)
	res, err := i.Runner.Run(ctx, run.Cmd{Argv: argv, Dir: i.Tree.Dir, Env: run.Setenv(i.env(), "GIT_CONFIG_GLOBAL", git), Log: i.Log})
	changes := diff(before, dists(i.Python))
	if err != nil {
		if ctx.Err() != nil {
			return changes, context.Cause(ctx)
		}
		p := report.Problemf(report.BuildFailed, "the source install of vllm-ascend failed: %w", err)
		p.Log, p.Tail = i.Log, run.LastLines(string(res.Stdout)+string(res.Stderr), 12)
		if re, ok := errors.AsType[*run.Error](err); ok {
			p.Tail = re.Tail(12)
		}
		p.State = "the operators were not touched"
		if len(changes) > 0 {
			p.State += "; pip changed " + Text(changes) + "; back: " + Back(i.Python, changes)
		}
		return changes, p
	}
	return changes, nil
}

func (i Install) argv() ([]string, error) {
	var argv []string
	_, pip := i.Python.Lookup("pip")
	switch {
	case pip:
		argv = []string{i.Python.Exe, "-m", "pip", "install", "--verbose", "--disable-pip-version-check", "--no-input", "--no-build-isolation"}
		if i.Offline {
			argv = append(argv, "--no-index")
		}
	case i.asksPip():
		return nil, report.Problemf(report.Unmet, "%s has no pip, and setup.py of this vllm-ascend asks pip where torch_npu is", i.Python.Exe).
			WithWant("pip in this Python", "none; setup.py would take the empty answer for the folder /torch_npu").WithHint("%s -m ensurepip", run.Quote(i.Python.Exe))
	case run.Has("uv", i.Env):
		argv = []string{"uv", "pip", "install", "--python", i.Python.Exe, "--verbose", "--no-build-isolation"}
		if i.Offline {
			argv = append(argv, "--offline")
		}
	default:
		return nil, report.Problemf(report.Unmet, "%s has no pip, and uv is not there", i.Python.Exe).
			WithWant("pip or uv", "neither").WithHint("%s -m ensurepip, or install uv", i.Python.Exe)
	}
	if i.Editable {
		argv = append(argv, "--editable")
	}
	return append(argv, i.Tree.Dir), nil
}

// asksPip reports whether the tree finds torch_npu by pip: without pip it goes
// on with a path that is none.
func (i Install) asksPip() bool {
	b, err := os.ReadFile(filepath.Join(i.Tree.Dir, "setup.py"))
	return err == nil && strings.Contains(string(b), "pip show torch-npu")
}

func (i Install) env() []string {
	env := run.Unsetenv(i.Env, "ASCEND_CUSTOM_OPP_PATH")
	for k, v := range map[string]string{
		"COMPILE_CUSTOM_KERNELS": "1", "VLLM_BATCH_INVARIANT": "0", InBuild: "1", "MAX_JOBS": strconv.Itoa(max(1, i.Jobs)),
		// python3 and pip3 of the tree's scripts are those of this Python.
		"PATH": filepath.Dir(i.Python.Exe) + ":" + run.Getenv(i.Env, "PATH"),
	} {
		env = run.Setenv(env, k, v)
	}
	if i.SoC != "" {
		env = run.Setenv(env, "SOC_VERSION", i.SoC)
	}
	return env
}

func dists(py python.Python) map[string]string {
	out := map[string]string{}
	for _, dir := range py.Paths {
		for _, d := range python.Dists(dir) {
			if _, ok := out[d.Name]; !ok {
				out[d.Name] = d.Version
			}
		}
	}
	return out
}

func diff(before, after map[string]string) []Change {
	var out []Change
	for name, v := range after {
		if before[name] != v {
			out = append(out, Change{Name: name, Was: before[name], Now: v})
		}
	}
	for name, v := range before {
		if _, ok := after[name]; !ok {
			out = append(out, Change{Name: name, Was: v})
		}
	}
	slices.SortFunc(out, func(a, b Change) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// Text lists changes in few words.
func Text(changes []Change) string {
	var out []string
	for _, c := range changes {
		switch {
		case c.Was == "":
			out = append(out, c.Name+" "+c.Now+" is new")
		case c.Now == "":
			out = append(out, c.Name+" "+c.Was+" is gone")
		default:
			out = append(out, fmt.Sprintf("%s %s was %s", c.Name, c.Now, c.Was))
		}
	}
	return strings.Join(out, ", ")
}

// Back is the command that undoes changes.
func Back(py python.Python, changes []Change) string {
	var add, remove []string
	for _, c := range changes {
		if c.Was == "" {
			remove = append(remove, c.Name)
		} else {
			add = append(add, c.Name+"=="+c.Was)
		}
	}
	var out []string
	if len(remove) > 0 {
		out = append(out, run.Cmd{Argv: append([]string{py.Exe, "-m", "pip", "uninstall", "--yes"}, remove...)}.String())
	}
	if len(add) > 0 {
		out = append(out, run.Cmd{Argv: append([]string{py.Exe, "-m", "pip", "install", "--no-deps"}, add...)}.String())
	}
	return strings.Join(out, " && ")
}
