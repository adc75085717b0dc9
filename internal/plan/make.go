package plan

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/invar-ops/invar/internal/python"
	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/target"
	"github.com/invar-ops/invar/internal/toolchain"
)

// Facts are the inputs of Make: what was found, never how.
type Facts struct {
	Arch            string
	Python          python.Python      // zero when none with torch was found
	Base            python.Python      // interpreter an environment can be made from; zero when none
	Candidates      []python.Candidate // Pythons that were looked at and not taken
	Compiler        toolchain.Compiler // zero when none answers
	CompilerReasons []toolchain.Reason
	HasUV           bool
	Packages        map[string]string   // versions of distributions in Python that requirements name
	Sources         map[string]string   // path below targets/ to "sha256:..."
	Includes        map[string][]string // path below targets/ to the names that it includes; "" is one that only a compiler knows
	Wheelhouse      python.Wheelhouse   // the folder that was given with wheels; zero when none was
	Release         *Release            // of targets whose operators are released
	CUDA            *CUDAFacts          // of a target with a GPU part
}

// Options are the user's choices.
type Options struct {
	Prefix     string
	Why        string // how the target was chosen
	Version    string // invar's own version
	Torch      string // requirement specifier instead of the pinned one
	TorchIndex string // index instead of the target's
	Offline    bool
	Wheelhouse string
}

// Make plans the build of t. When the host does not meet t the error is a
// *report.UnmetError with every requirement, and the plan holds what could be
// planned all the same.
func Make(t target.Target, f Facts, o Options) (Plan, error) {
	p := Plan{
		Target: t.Name, Why: o.Why, Flavour: t.Flavour, Includes: t.Includes, Contract: t.Contract, Arch: f.Arch,
		Prefix: o.Prefix, Python: f.Python, Compiler: f.Compiler,
	}
	if !f.Python.HasTorch() && len(t.Python.Install) > 0 {
		r := recipe(t, f, o)
		p.Recipe = &r
		p.Python = r.Result()
	}
	p.Release = f.Release
	if t.CUDA != nil && f.CUDA != nil {
		p.CUDA = cudaPlan(*f.CUDA, o.Prefix)
	}
	p.Requirements = requirements(t, f, p)
	if t.Builds() {
		p.Steps = steps(t, f, o, p)
		p.Fingerprint = seal(p.Steps, builder{t, f, o, p}.places())
	}
	if slices.ContainsFunc(p.Requirements, func(r report.Requirement) bool { return !r.OK }) {
		return p, &report.UnmetError{Target: t.Name, All: p.Requirements}
	}
	return p, nil
}

// recipe is the environment that invar makes when the host has none with torch.
func recipe(t target.Target, f Facts, o Options) python.Recipe {
	r := python.Recipe{
		Base: f.Base, Packages: slices.Clone(t.Python.Install), Index: t.Python.Index,
		Wheelhouse: o.Wheelhouse, Offline: o.Offline, Installer: "pip", Download: t.Python.Download,
	}
	if f.HasUV {
		r.Installer = "uv"
	}
	if o.Torch != "" {
		r.Packages[0] = o.Torch
	}
	if o.TorchIndex != "" {
		r.Index, r.Explicit = o.TorchIndex, true
	}
	r.Dir = EnvironmentDir(o.Prefix, f.Base, r.Packages[0])
	return r
}

// EnvironmentDir is the folder of the environment that invar makes from base
// with torch as the requirement specifier says. Each base has its own: an
// environment of another interpreter of the same version is another one.
func EnvironmentDir(prefix string, base python.Python, torch string) string {
	return filepath.Join(prefix, "python", base.Minor()+"-"+slug(torch)+"-"+base.ID()[:6])
}

// slug makes a folder name of a requirement specifier: "torch==2.15.0" is "torch-2.15.0".
func slug(spec string) string {
	var b strings.Builder
	for _, c := range strings.ReplaceAll(spec, "==", "-") {
		if strings.ContainsRune("-._+", c) || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' {
			b.WriteRune(c)
		}
	}
	return b.String()
}
