package cuda

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/invar-ops/invar/internal/python"
	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/run"
)

// A Recipe says how invar makes a toolkit of its own from compiler wheels. It
// is an environment of its own, which no user's Python sees.
type Recipe struct {
	Base       python.Python `json:"base"` // interpreter of the environment; nothing of it is used otherwise
	Dir        string        `json:"dir"`
	Minor      string        `json:"minor"` // CUDA: "13.2"
	Packages   []string      `json:"packages"`
	Wheelhouse string        `json:"wheelhouse,omitempty"`
	Offline    bool          `json:"offline,omitempty"`
	UV         bool          `json:"uv"`
}

// ready marks a toolkit whose installation finished.
const ready = ".invar-ready"

// Own is the folder of invar's own toolkits below prefix.
func Own(prefix string) string { return filepath.Join(prefix, "cuda") }

// NewRecipe is the toolkit for CUDA minor. Where the package index has no such
// compiler the error says how else it is had.
func NewRecipe(prefix, cuda string, base python.Python, uv bool) (Recipe, error) {
	if ok, why, command := OnIndex(cuda); !ok {
		return Recipe{}, report.Problemf(report.Unmet, "--install-toolkit: %s", why).
			WithWant("a torch for CUDA 13 or newer", "CUDA "+cuda).WithHint("%s", command)
	}
	minor := MinorOf(cuda)
	wheels, err := Wheels(minor)
	return Recipe{Base: base, Dir: filepath.Join(Own(prefix), minor), Minor: minor, Packages: wheels, UV: uv}, err
}

// Ready reports whether the toolkit was made, to the end.
func (r Recipe) Ready() bool {
	b, err := os.ReadFile(filepath.Join(r.Dir, ready))
	return err == nil && string(b) == strings.Join(r.Packages, " ")
}

// Home is where its files are, or will be.
func (r Recipe) Home() string {
	return filepath.Join(r.Dir, "lib", "python"+r.Base.Minor(), "site-packages", "nvidia", "cu"+majorOf(r.Minor))
}

// Commands are the processes that make it.
func (r Recipe) Commands() [][]string {
	py := filepath.Join(r.Dir, "bin", "python")
	var source []string
	if r.Wheelhouse != "" {
		source = append(source, "--find-links", r.Wheelhouse)
		if r.Offline {
			source = append(source, "--no-index")
		}
	}
	if r.UV {
		if r.Offline && r.Wheelhouse == "" {
			source = append(source, "--offline")
		}
		install := append([]string{"uv", "pip", "install", "--python", py, "--no-deps"}, source...)
		return [][]string{{"uv", "venv", "--quiet", "--python", r.Base.Exe, r.Dir}, append(install, r.Packages...)}
	}
	install := append([]string{py, "-m", "pip", "install", "--no-input", "--no-deps"}, source...)
	return [][]string{{r.Base.Exe, "-m", "venv", r.Dir}, append(install, r.Packages...)}
}

// Make carries the recipe out. What an earlier, unfinished try left goes first.
func Make(ctx context.Context, r Recipe, runner run.Runner, env []string, log string) error {
	if r.Ready() {
		return nil
	}
	if r.Base.Exe == "" {
		return report.Problemf(report.Unmet, "--install-toolkit needs a Python to unpack wheels with").WithHint("apt-get install python3 python3-venv")
	}
	if err := os.RemoveAll(r.Dir); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(r.Dir), 0o755); err != nil {
		return err
	}
	for _, argv := range r.Commands() {
		if _, err := runner.Run(ctx, run.Cmd{Argv: argv, Env: env, Log: log}); err != nil {
			_ = os.RemoveAll(r.Dir)
			return makeProblem(err, log)
		}
	}
	return os.WriteFile(filepath.Join(r.Dir, ready), []byte(strings.Join(r.Packages, " ")), 0o644)
}

func makeProblem(err error, log string) error {
	p := report.Problemf(report.BuildFailed, "CUDA toolkit: %w", err)
	p.Log = log
	if re, ok := errors.AsType[*run.Error](err); ok {
		p.Tail = re.Tail(12)
	}
	return p.WithHint("pass --cuda-home with a toolkit of the system, or --wheelhouse with the wheels")
}
