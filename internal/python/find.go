package python

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/run"
)

// Options say which Python to look for.
type Options struct {
	Exe    string   // --python: a path or a name on PATH; empty looks around
	Env    []string // PATH and VIRTUAL_ENV are read from here
	Home   string   // invar's home; its own environments are in Home/python
	Runner run.Runner
}

// A Candidate is an interpreter that was looked at and why it was not taken.
type Candidate struct {
	Exe    string `json:"exe"`
	Reason string `json:"reason"`
}

// Find chooses the Python to install into: --python, VIRTUAL_ENV, the first
// python3 on PATH with torch, invar's own environment. The zero Python with no
// error means that there is none with torch and one has to be made.
func Find(ctx context.Context, o Options) (Python, []Candidate, error) {
	if o.Exe != "" {
		p, err := explicit(ctx, o)
		return p, nil, err
	}
	if v := run.Getenv(o.Env, "VIRTUAL_ENV"); v != "" {
		p, ok := Inspect(filepath.Join(v, "bin", "python"))
		if !ok {
			return Python{}, nil, report.Problemf(report.Unmet, "VIRTUAL_ENV names %s, which is no Python environment", v).
				WithHint("deactivate it, or pass --python")
		}
		p.Why = "VIRTUAL_ENV"
		return p, nil, nil
	}
	var seen []Candidate
	for _, exe := range onPath(o.Env, "python3") {
		p, reason := withTorch(ctx, o, exe)
		if reason == "" {
			p.Why = "first python3 on PATH with torch"
			return p, seen, nil
		}
		seen = append(seen, Candidate{exe, reason})
	}
	if p, ok := Own(o.Home); ok {
		return p, seen, nil
	}
	return Python{}, seen, nil
}

const hintPython = "leave out --python to let invar look around, or make an environment: python3 -m venv DIR"

func explicit(ctx context.Context, o Options) (Python, error) {
	exe := o.Exe
	if !strings.Contains(exe, "/") && !isDir(exe) {
		full, err := run.LookPath(exe, o.Env)
		if err != nil {
			return Python{}, report.Problemf(report.Unmet, "--python %s: not found on PATH", o.Exe).WithHint("%s", hintPython)
		}
		exe = full
	}
	if st, err := os.Stat(exe); err == nil && st.IsDir() {
		exe = filepath.Join(exe, "bin", "python")
	}
	if _, err := os.Stat(exe); err != nil {
		return Python{}, report.Problemf(report.Unmet, "--python: %w", err).
			WithWant("an interpreter, or the folder of an environment", o.Exe).WithHint("%s", hintPython)
	}
	p, ok := Inspect(exe)
	if !ok {
		var err error
		if p, err = Ask(ctx, o, exe); err != nil {
			if pr, ok := errors.AsType[*report.Problem](err); ok {
				_ = pr.WithWant("an interpreter, or the folder of an environment", o.Exe).WithHint("%s", hintPython)
			}
			return p, err
		}
	}
	p.Why = "--python"
	return p, nil
}

// withTorch inspects exe; the reason is empty when torch is in it.
func withTorch(ctx context.Context, o Options, exe string) (Python, string) {
	p, ok := Inspect(exe)
	if !ok {
		if reason, known := shim(exe); known && reason != "" {
			return p, reason
		}
		var err error
		if p, err = Ask(ctx, o, exe); err != nil {
			return p, err.Error()
		}
	}
	if !p.HasTorch() {
		return p, "torch is not installed"
	}
	return p, ""
}

// shim handles pyenv: when no version below it has torch, nothing needs to be
// asked. The reason is empty when one has.
func shim(exe string) (reason string, known bool) {
	versions := filepath.Join(filepath.Dir(filepath.Dir(exe)), "versions")
	if filepath.Base(filepath.Dir(exe)) != "shims" || !isDir(versions) {
		return "", false
	}
	hits, _ := filepath.Glob(filepath.Join(versions, "*", "lib", "python3*", "site-packages", "torch-*.dist-info"))
	if len(hits) == 0 {
		return "pyenv shim; torch is installed in none of its versions", true
	}
	return "", true
}

const question = `import json,sys,sysconfig,site
print(json.dumps({"exe":sys.executable,"version":"%d.%d.%d"%sys.version_info[:3],"prefix":sys.prefix,
"purelib":sysconfig.get_path("purelib"),"venv":sys.prefix!=sys.base_prefix,
"paths":[p for p in sys.path if p.endswith("-packages")]}))`

// Ask starts the interpreter (without torch) and lets it describe itself.
func Ask(ctx context.Context, o Options, exe string) (Python, error) {
	res, err := o.Runner.Run(ctx, run.Cmd{
		Argv: []string{exe, "-c", question}, Env: o.Env, Timeout: 20 * time.Second,
	})
	if err != nil {
		return Python{}, report.Problemf(report.Unmet, "%s does not answer: %w", exe, err)
	}
	var p Python
	if err := json.Unmarshal(res.Stdout, &p); err != nil {
		return Python{}, report.Problemf(report.Unmet, "%s does not describe itself: %w", exe, err)
	}
	p.Torch = findTorch(p.Paths)
	return p, nil
}

// Own is the newest environment that invar made below home and finished.
func Own(home string) (Python, bool) {
	marks, _ := filepath.Glob(filepath.Join(home, "python", "*", ready))
	for _, mark := range slices.Backward(marks) {
		if p, ok := OwnAt(filepath.Dir(mark)); ok {
			return p, true
		}
	}
	return Python{}, false
}

// OwnAt is the finished environment of invar's own at dir.
func OwnAt(dir string) (Python, bool) {
	if _, err := os.Stat(filepath.Join(dir, ready)); err != nil {
		return Python{}, false
	}
	p, ok := Inspect(filepath.Join(dir, "bin", "python"))
	p.Own, p.Why = true, "made by invar"
	return p, ok && p.HasTorch()
}

func onPath(env []string, name string) []string {
	var out []string
	seen := map[string]bool{}
	for d := range strings.SplitSeq(run.Getenv(env, "PATH"), ":") {
		if d == "" || seen[d] {
			continue
		}
		seen[d] = true
		exe, err := run.LookPath(filepath.Join(d, name), env)
		if err == nil {
			out = append(out, exe)
		}
	}
	return out
}

// Base finds an interpreter of at least minMinor (3.x) to make an environment from.
func Base(ctx context.Context, o Options, minMinor int) (Python, []Candidate, error) {
	var seen []Candidate
	names := []string{"python3"}
	for m := 20; m >= minMinor; m-- {
		names = append(names, fmt.Sprintf("python3.%d", m))
	}
	for _, name := range names {
		for _, exe := range onPath(o.Env, name) {
			p, ok := Inspect(exe)
			if !ok {
				var err error
				if p, err = Ask(ctx, o, exe); err != nil {
					seen = append(seen, Candidate{exe, err.Error()})
					continue
				}
			}
			var major, minor int
			if n, _ := fmt.Sscanf(p.Version, "%d.%d", &major, &minor); n == 2 && major == 3 && minor >= minMinor {
				return p, seen, nil
			}
			seen = append(seen, Candidate{exe, "version " + p.Version})
		}
	}
	return Python{}, seen, nil
}
