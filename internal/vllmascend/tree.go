// Package vllmascend knows the source tree of vllm-ascend: which version it is,
// which operators its script would install, how it is installed together with
// them, and how its script is replaced by invar. The two stages themselves are
// not its business.
package vllmascend

import (
	"bufio"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/invar-ops/invar/internal/python"
	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/run"
	"github.com/invar-ops/invar/internal/version"
)

// Dist is the name of the distribution.
const Dist = "vllm-ascend"

// script is the one that installs the operators, below the tree.
const script = "csrc/build_batch_invariant_ops.sh"

// A Tree is a source tree of vllm-ascend.
type Tree struct {
	Dir     string `json:"dir"`
	Version string `json:"version"` // "" when nothing tells
	Source  string `json:"source"`  // what told
	Ops     string `json:"ops"`     // version of the operators that its script installs, "" without one
}

// Open reads the tree at dir.
func Open(ctx context.Context, r run.Runner, dir string, env []string) (Tree, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return Tree{}, err
	}
	t := Tree{Dir: abs}
	for _, name := range []string{"setup.py", "vllm_ascend/__init__.py", "csrc"} {
		if _, err := os.Stat(filepath.Join(abs, name)); err != nil {
			return t, report.Problemf(report.Unmet, "%s is no source tree of vllm-ascend", dir).
				WithWant("setup.py, vllm_ascend and csrc in it", "no "+name).
				WithHint("invar source vllm-ascend fetches the tree of the installed version")
		}
	}
	t.Version, t.Source = t.version(ctx, r, env)
	t.Ops = t.ops()
	return t, nil
}

var writtenRE = regexp.MustCompile(`(?m)^(?:__version__|version)\s*(?::\s*str\s*)?=\s*(?:version\s*=\s*)?['"]([^'"]+)['"]`)

// version asks the metadata of a released tree, what a build wrote, and git.
func (t Tree) version(ctx context.Context, r run.Runner, env []string) (string, string) {
	if v := metadata(filepath.Join(t.Dir, "PKG-INFO"), "Version"); v != "" {
		return v, "PKG-INFO"
	}
	if b, err := os.ReadFile(filepath.Join(t.Dir, "vllm_ascend", "_version.py")); err == nil {
		if m := writtenRE.FindSubmatch(b); m != nil {
			return string(m[1]), "vllm_ascend/_version.py"
		}
	}
	if _, err := os.Stat(filepath.Join(t.Dir, ".git")); err != nil {
		return "", ""
	}
	res, err := r.Run(ctx, run.Cmd{
		Argv: []string{"git", "-c", "safe.directory=*", "describe", "--tags", "--abbrev=0"}, Dir: t.Dir, Env: run.Pick(env, "PATH"),
	})
	if err != nil {
		return "", ""
	}
	return strings.TrimPrefix(strings.TrimSpace(string(res.Stdout)), "v"), "git describe"
}

// metadata is one field of a PKG-INFO file.
func metadata(file, field string) string {
	f, err := os.Open(file)
	if err != nil {
		return ""
	}
	defer f.Close()
	for sc := bufio.NewScanner(f); sc.Scan() && sc.Text() != ""; {
		if k, v, ok := strings.Cut(sc.Text(), ":"); ok && strings.EqualFold(k, field) {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

var opsRE = regexp.MustCompile(`cann-ops-batch_invariant-[^"'\s]*?-(\d+(?:\.\d+)+)-linux`)

// ops is the version that the script of the tree downloads. The script may be
// the one that a shim keeps.
func (t Tree) ops() string {
	for _, name := range []string{script + kept, script} {
		b, err := os.ReadFile(filepath.Join(t.Dir, name))
		if err != nil {
			continue
		}
		if m := opsRE.FindSubmatch(b); m != nil {
			return string(m[1])
		}
	}
	return ""
}

// Match compares the tree with the vllm-ascend in py. Another one is refused,
// unless skew says that this is meant.
func (t Tree) Match(py python.Python, skew bool) error {
	d, ok := py.Lookup(Dist)
	if !ok {
		return report.Problemf(report.Unmet, "vllm-ascend is not installed in %s", py.Exe).
			WithWant("vllm-ascend "+t.Version, "none").
			WithHint("install it and the operators together: --install-vllm-ascend %s", run.Quote(t.Dir))
	}
	if skew || same(t.Version, d.Version) {
		return nil
	}
	got := t.Version
	if got == "" {
		got = "no version: neither PKG-INFO, _version.py nor git tells"
	}
	return report.Problemf(report.Unmet, "the source tree %s is not that of the installed vllm-ascend", t.Dir).
		WithWant(d.Version+", as installed in "+d.Dir, got).
		WithHint("invar source vllm-ascend fetches the matching tree; --allow-version-skew goes on all the same")
}

// same compares two versions without their local parts: 0.23.0+git1 is built from 0.23.0.
func same(a, b string) bool {
	a, _, _ = strings.Cut(a, "+")
	b, _, _ = strings.Cut(b, "+")
	va, errA := version.Parse(version.PEP440, a)
	vb, errB := version.Parse(version.PEP440, b)
	if errA != nil || errB != nil {
		return a != "" && a == b
	}
	return !version.Less(va, vb) && !version.Less(vb, va)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil || !errors.Is(err, fs.ErrNotExist)
}
