package extwheel

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/invar-ops/invar/internal/python"
	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/run"
	"github.com/invar-ops/invar/internal/wheel"
	"github.com/invar-ops/invar/scripts"
)

// A Build is one build of a wheel.
type Build struct {
	Runner  run.Runner
	Python  python.Python
	Project string   // folder in scratch; the build writes into it
	Scratch string   // of this build alone
	Env     []string // CANN's environment
	Package string   // import name, and distribution name up to spelling
	Arch    string   // of the host
	Jobs    int
	Offline bool
	Log     string
	Note    func(string)
}

// Make builds the wheel and returns its path: the only one that came out, for
// this Python and architecture. A compiler that the kernel killed is started
// once more with one job.
func (b Build) Make(ctx context.Context) (string, error) {
	out := filepath.Join(b.Scratch, "dist")
	res, err := b.once(ctx, out, b.Jobs)
	if err != nil && ctx.Err() == nil && b.Jobs > 1 && killed(res) {
		b.Note(fmt.Sprintf("stage 2: a compiler was killed with %d jobs, most often because memory ran out; again with one", b.Jobs))
		res, err = b.once(ctx, out, 1)
	}
	if err != nil {
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		return "", b.failed(res, err)
	}
	return b.only(ctx, out)
}

func (b Build) once(ctx context.Context, out string, jobs int) (run.Result, error) {
	for _, d := range []string{"home", "tmp", "scripts"} {
		if err := os.MkdirAll(filepath.Join(b.Scratch, d), 0o755); err != nil {
			return run.Result{}, err
		}
	}
	if err := os.RemoveAll(out); err != nil {
		return run.Result{}, err
	}
	if err := os.Mkdir(out, 0o755); err != nil {
		return run.Result{}, err
	}
	if err := scripts.Unpack(filepath.Join(b.Scratch, "scripts")); err != nil {
		return run.Result{}, err
	}
	return b.Runner.Run(ctx, run.Cmd{
		Argv: []string{b.Python.Exe, filepath.Join(b.Scratch, "scripts", scripts.Wheel), b.Project, out},
		Dir:  b.Project, Env: b.env(jobs), Log: b.Log, Confine: b.bounds(),
	})
}

// bounds lets the build write to its scratch and to the usual folders for
// temporary files, which compilers name without asking.
func (b Build) bounds() *run.Confine {
	c := &run.Confine{Write: []string{b.Scratch, b.Project}, Network: !b.Offline}
	for _, d := range []string{"/tmp", "/var/tmp", "/dev/shm"} {
		if st, err := os.Stat(d); err == nil && st.IsDir() {
			c.Write = append(c.Write, d)
		}
	}
	return c
}

// env is CANN's environment with a home of the build's own: nothing of the
// user's pip, git or compiler settings comes in or is changed.
func (b Build) env(jobs int) []string {
	env := run.Unsetenv(b.Env, "CXXFLAGS", "CFLAGS", "PYTHONHOME", "VLLM_BATCH_INVARIANT")
	for k, v := range map[string]string{
		"HOME": filepath.Join(b.Scratch, "home"), "TMPDIR": filepath.Join(b.Scratch, "tmp"), "MAX_JOBS": strconv.Itoa(jobs),
		"USE_NINJA": "1", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONNOUSERSITE": "1", "LC_ALL": "C", "SOURCE_DATE_EPOCH": "315532800",
		// python3 and pip3 of scripts in the tree are those of the chosen Python.
		"PATH": filepath.Dir(b.Python.Exe) + ":" + run.Getenv(b.Env, "PATH"),
	} {
		env = run.Setenv(env, k, v)
	}
	return env
}

func killed(res run.Result) bool {
	text := string(res.Stdout) + string(res.Stderr)
	return strings.Contains(text, "Killed signal terminated program") || strings.Contains(text, "Killed (program cc1") ||
		strings.Contains(text, "unable to execute command: Killed") || res.Signal == 9
}

func (b Build) failed(res run.Result, err error) error {
	p := report.Problemf(report.BuildFailed, "stage 2 failed: %w", err)
	p.Log = b.Log
	if re, ok := errors.AsType[*run.Error](err); ok {
		p.Tail = re.Tail(12)
	}
	if killed(res) {
		p.Cause, p.Hint = "the kernel killed a compiler, most often because memory ran out", "free memory, or raise the limit of the container"
	}
	return p
}

// only finds the one wheel in dir and compares its tags with the Python.
func (b Build) only(ctx context.Context, dir string) (string, error) {
	made, err := filepath.Glob(filepath.Join(dir, "*.whl"))
	if err != nil {
		return "", err
	}
	if len(made) != 1 {
		return "", report.Problemf(report.BuildFailed, "stage 2 made %d wheels", len(made)).
			WithWant("one wheel of "+b.Package, strings.Join(made, ", "))
	}
	w, err := wheel.Open(made[0])
	if err != nil {
		return "", report.Problemf(report.BuildFailed, "stage 2 made no whole wheel: %w", err)
	}
	defer w.Close()
	if python.Normalize(w.Name) != python.Normalize(b.Package) {
		return "", report.Problemf(report.BuildFailed, "stage 2 made the wheel of another package").WithWant(b.Package, w.Name)
	}
	if !b.fits(w.Tags) {
		return "", report.Problemf(report.BuildFailed, "stage 2 made a wheel for another Python").
			WithWant("cp"+strings.ReplaceAll(b.Python.Minor(), ".", "")+" or py3, "+b.Arch, strings.Join(w.Tags, ", ")).
			WithHint("the build used another interpreter than %s", b.Python.Exe)
	}
	if err := w.Verify(ctx); err != nil {
		return "", report.Problemf(report.BuildFailed, "stage 2 made no whole wheel: %w", err)
	}
	return made[0], nil
}

// fits reports whether one of the tags is of this Python and architecture.
func (b Build) fits(tags []string) bool {
	cp := "cp" + strings.ReplaceAll(b.Python.Minor(), ".", "")
	for _, t := range tags {
		part := strings.SplitN(t, "-", 3)
		if len(part) != 3 {
			continue
		}
		py := part[0] == cp || part[0] == "py3" || part[1] == "abi3"
		abi := part[1] == cp || part[1] == "abi3" || part[1] == "none"
		platform := part[2] == "any" || strings.HasSuffix(part[2], "_"+b.Arch)
		if py && abi && platform {
			return true
		}
	}
	return false
}
