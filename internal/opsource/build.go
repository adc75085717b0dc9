// Package opsource makes a run package from an operator source tree of CANN by
// the tree's own build.sh, in a copy of it: the tree itself, the user's home
// and git's global settings stay as they are.
package opsource

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/invar-ops/invar/internal/extwheel"
	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/run"
	"github.com/invar-ops/invar/internal/runpkg"
	"github.com/invar-ops/invar/internal/store"
)

// A Build is one build of a source tree.
type Build struct {
	Runner     run.Runner
	Tree       string   // with build.sh, or csrc/build.sh
	SoC        string   // as build.sh wants it: "ascend910b"
	Ops        []string // empty builds what the tree builds by itself
	ThirdParty string   // folder with the archives that the tree would fetch; "" lets it fetch
	Scratch    string   // empty folder, of this build alone
	Env        []string // CANN's environment
	Jobs       int
	Offline    bool
	Log        string
	Note       func(string) // told what is changed in the copy; nil is not told
}

// outputs are where build.sh leaves packages. Older ones there are not copied.
var outputs = []string{"build", "build_out", "output"}

// Root is the folder with build.sh in the tree at dir.
func Root(dir string) (string, error) {
	for _, sub := range []string{"", "csrc"} {
		p := filepath.Join(dir, sub)
		if st, err := os.Stat(filepath.Join(p, "build.sh")); err == nil && st.Mode().IsRegular() {
			return p, nil
		}
	}
	return "", report.Problemf(report.Unmet, "%s is no operator source tree", dir).
		WithWant("build.sh in it or in csrc", "none").WithHint("name the folder that holds build.sh: --ops-source DIR")
}

// Digest is that of every source below dir: the tree may be one that somebody works on.
func Digest(ctx context.Context, dir string) (string, error) {
	root, err := Root(dir)
	if err != nil {
		return "", err
	}
	return extwheel.Digest(ctx, root, outputs...)
}

// Make builds the run package and returns its path.
func (b Build) Make(ctx context.Context) (string, error) {
	root, err := Root(b.Tree)
	if err != nil {
		return "", err
	}
	if b.ThirdParty != "" {
		if st, err := os.Stat(b.ThirdParty); err != nil || !st.IsDir() {
			return "", report.Usagef("--third-party %s is no folder", b.ThirdParty)
		}
	}
	if _, err := run.LookPath("bisheng", b.Env); err != nil {
		return "", report.Problemf(report.Unmet, "operators are compiled with bisheng, which this CANN has not").
			WithWant("bisheng on the PATH of CANN's environment", "none").
			WithHint("./Ascend-cann-toolkit_VERSION_linux-ARCH.run --full brings the compiler; a released run package does without")
	}
	tree := filepath.Join(b.Scratch, "tree")
	if err := extwheel.CopyTree(root, tree, outputs...); err != nil {
		return "", store.Explain(err, b.Scratch)
	}
	changed, err := verifyTLS(tree)
	if err != nil {
		return "", store.Explain(err, b.Scratch)
	}
	if len(changed) > 0 && b.Note != nil {
		b.Note("stage 1: certificates are checked in the copy, where the sources say not to: " + strings.Join(changed, ", "))
	}
	for _, d := range []string{"home", "tmp"} {
		if err := os.MkdirAll(filepath.Join(b.Scratch, d), 0o755); err != nil {
			return "", err
		}
	}
	res, err := b.Runner.Run(ctx, run.Cmd{Argv: b.argv(), Dir: tree, Env: b.env(), Log: b.Log, Confine: b.bounds()})
	if err != nil {
		return "", b.failed(ctx, res, err)
	}
	return b.only(ctx, tree, res)
}

func (b Build) argv() []string {
	argv := []string{"bash", "build.sh", "--pkg", "--soc=" + b.SoC, fmt.Sprintf("-j%d", max(1, b.Jobs))}
	if len(b.Ops) > 0 {
		argv = append(argv, "--ops="+strings.Join(b.Ops, ","))
	}
	if b.ThirdParty != "" {
		argv = append(argv, "--cann_3rd_lib_path="+b.ThirdParty)
	}
	return argv
}

func (b Build) env() []string {
	env := run.Unsetenv(b.Env, "ASCEND_CUSTOM_OPP_PATH", "CXXFLAGS", "CFLAGS", "GIT_SSL_NO_VERIFY")
	for k, v := range map[string]string{
		"HOME": filepath.Join(b.Scratch, "home"), "TMPDIR": filepath.Join(b.Scratch, "tmp"), "LC_ALL": "C",
		"MAX_JOBS": fmt.Sprint(max(1, b.Jobs)), "OPS_CPU_NUMBER": fmt.Sprint(max(1, b.Jobs)), "SOC_VERSION": b.SoC,
		"CMAKE_TLS_VERIFY": "1",
		// Whoever asks git for its settings gets this build's, and may trust the copy.
		"GIT_CONFIG_GLOBAL": filepath.Join(b.Scratch, "home", ".gitconfig"), "GIT_CONFIG_NOSYSTEM": "1",
	} {
		env = run.Setenv(env, k, v)
	}
	return env
}

func (b Build) bounds() *run.Confine {
	c := &run.Confine{Write: []string{b.Scratch}, Network: !b.Offline}
	for _, d := range []string{"/tmp", "/var/tmp", "/dev/shm"} {
		if st, err := os.Stat(d); err == nil && st.IsDir() {
			c.Write = append(c.Write, d)
		}
	}
	return c
}

func (b Build) failed(ctx context.Context, res run.Result, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	p := report.Problemf(report.BuildFailed, "build.sh of the operator sources failed: %w", err)
	p.Log = b.Log
	if re, ok := errors.AsType[*run.Error](err); ok {
		p.Tail = re.Tail(12)
	}
	if b.Offline && b.ThirdParty == "" {
		p.Hint = "offline it needs its third-party archives: --third-party DIR"
	}
	return p
}

// only finds the package that the build left. The same file often lies in two
// of the folders; two different ones are refused, and so is none, which
// build.sh ends with 0 for SoCs that it does not know.
func (b Build) only(ctx context.Context, tree string, res run.Result) (string, error) {
	found := map[string]string{}
	for _, dir := range outputs {
		err := filepath.WalkDir(filepath.Join(tree, dir), func(p string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() || filepath.Ext(p) != ".run" {
				return nil //nolint:nilerr // a folder that is not there holds nothing
			}
			sum, _, err := store.Digest(ctx, p)
			if err == nil && isPackage(p) {
				found[sum] = p
			}
			return err
		})
		if err != nil {
			return "", err
		}
	}
	var names []string
	for _, p := range found {
		rel, _ := filepath.Rel(tree, p)
		names = append(names, rel)
	}
	slices.Sort(names)
	if len(names) != 1 {
		p := report.Problemf(report.BuildFailed, "build.sh of the operator sources left %d run packages", len(names)).
			WithWant("one in "+strings.Join(outputs, ", "), strings.Join(names, ", "))
		p.Log, p.Tail = b.Log, run.LastLines(string(res.Stdout)+string(res.Stderr), 8)
		return "", p
	}
	return filepath.Join(tree, names[0]), nil
}

// isPackage tells run packages from other files of that name, such as tools
// that the build fetched.
func isPackage(path string) bool {
	p, err := runpkg.Open(path)
	if err != nil {
		return false
	}
	defer p.Close()
	return strings.Contains(p.Script, "install.sh")
}
