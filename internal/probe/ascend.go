package probe

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/invar-ops/invar/internal/opp"
	"github.com/invar-ops/invar/internal/released"
	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/run"
	"github.com/invar-ops/invar/internal/vllmascend"
)

// npuFacts is what scripts/invar_probe/npu.py answers.
type npuFacts struct {
	Count      int               `json:"count"`
	Name       string            `json:"name"`
	Simulated  string            `json:"simulated"` // what a look-alike CANN says of itself
	Triton     bool              `json:"triton"`
	VLLMAscend string            `json:"vllm_ascend"` // its folder
	Opened     map[string]string `json:"opened"`      // why the loader refuses a file, "" when it takes it
	TorchNPU   string            `json:"torch_npu"`
	LevelKnob  bool              `json:"deterministic_level"` // torch_npu can ask CANN for its consistency level
	Error      string            `json:"error"`
}

// onNPU reports whether the target's operators run on an Ascend NPU.
func (p *prober) onNPU() bool { return p.target.Flavour == "ascend" }

// vendorLibrary is stage 1 of an Ascend installation.
func (p *prober) vendorLibrary() string { return filepath.Join(p.receipt.VendorDir(), opp.Library) }

// lacksNPU says what keeps a level from being run on this host.
func (p *prober) lacksNPU(level int) string {
	switch {
	case level == Files || level == Kernels:
		return ""
	case run.Getenv(p.Env, "ASCEND_HOME_PATH") == "":
		return "it needs CANN's environment: name its folder with --cann"
	case level < Numbers:
		return ""
	case p.facts == nil || p.facts.NPU == nil:
		return "it needs an NPU, which is asked for at level 2"
	case p.facts.NPU.Count == 0:
		return "it needs an NPU that torch_npu can use" + because(p.facts.NPU.Error)
	}
	return ""
}

// aclnn lists the functions behind the target's operators.
func (p *prober) aclnn() []string { return released.Functions(p.target, p.receipt.Release.Version) }

// npuFiles is the part of level 1 about the operator package: the library opens
// by the loader's rules, has every function with its GetWorkspaceSize, and takes
// nothing over from CANN.
func (p *prober) npuFiles() []report.Check {
	var own, builtin opp.Candidate
	for _, c := range p.lookup().Candidates() {
		if p.same(c.Path, p.vendorLibrary()) && own.Path == "" {
			own = c
		}
		if c.Via == "CANN" {
			builtin = c
		}
	}
	const name = "functions of libcust_opapi.so"
	if own.Path == "" {
		c := check(Files, name, false, p.vendorLibrary(), "the lookup of CANN never comes to it: ASCEND_CUSTOM_OPP_PATH="+run.Getenv(p.Env, "ASCEND_CUSTOM_OPP_PATH"))
		c.Hint = "start programs with invar exec -- CMD, or after eval \"$(invar env)\""
		return []report.Check{c}
	}
	if !own.Usable() {
		c := check(Files, name, false, "a library that the loader takes", p.within(own.Path)+": "+own.Problem)
		c.Hint = "torch_npu would only say that a function is not in libopapi.so; source CANN's set_env.sh, or build for this CANN"
		return []report.Check{c}
	}
	var missing []string
	for _, f := range p.aclnn() {
		for _, n := range opp.Pair(f) {
			if !own.Exports(n) {
				missing = append(missing, n)
			}
		}
	}
	c := check(Files, name, len(missing) == 0, fmt.Sprintf("%s, each with its %s", count(len(p.aclnn()), "function"), opp.GetWorkspaceSize),
		firstNonEmpty(prefixed("without ", missing), "all of them"))
	c.Hint = hintUnless(c, "the run package is of another version than the wheel: build both from one version")
	taken := opp.Hijacked(own, builtin)
	d := check(Files, "names of CANN", len(taken) == 0, "no function of CANN's own exported by the package",
		firstNonEmpty(prefixed("it takes over ", taken), "none"))
	d.Hint = hintUnless(d, "vendors come before CANN for every name: every program would use these; do not use this package")
	return []report.Check{c, d}
}

// lookup is what the lookup of a function depends on in the probed process.
func (p *prober) lookup() opp.Env {
	e := opp.FromEnviron(p.Env)
	e.Root, e.Arch = p.Root, p.arch()
	return e
}

// npuWiring is level 4: the lookup ends in this installation for every function,
// in the process itself and in one that vllm-ascend has prepared, and the loader
// takes the library.
func (p *prober) npuWiring() []report.Check {
	env := p.lookup()
	out := []report.Check{p.opens(), p.wins("lookup", env)}
	if own := p.vllmVendor(); own != "" {
		// A worker inherits what its parent has set, and goes through the hook of
		// its Python and through vllm-ascend once more.
		parent := env.Prepend(own)
		out = append(out, p.wins("lookup after vllm-ascend's start", parent),
			p.wins("lookup in vllm-ascend's workers", parent.First(p.receipt.VendorDir()).Prepend(own)))
	}
	p.contrary()
	p.choice()
	p.consistency()
	return out
}

func (p *prober) opens() report.Check {
	path := p.vendorLibrary()
	text, asked := p.facts.NPU.Opened[path]
	c := check(Wiring, "dlopen", asked && text == "", p.within(path)+" opens in the probed process", firstNonEmpty(text, "it opens"))
	c.Hint = hintUnless(c, "this is what torch_npu hides behind \"not in libopapi.so\"")
	return c
}

// wins compares, name by name, who serves it with this installation.
func (p *prober) wins(name string, env opp.Env) report.Check {
	var lost, shadowed []string
	for _, f := range p.aclnn() {
		for _, found := range opp.Resolve(env.Candidates(), opp.Pair(f)...) {
			switch {
			case found.Library == "":
				lost = append(lost, found.Name+": nowhere")
			case !p.same(found.Library, p.vendorLibrary()):
				lost = append(lost, found.Name+": "+found.Library+" ("+found.Via+")")
			}
			for _, s := range found.Shadowed {
				if !slices.Contains(shadowed, s) {
					shadowed = append(shadowed, s)
				}
			}
		}
	}
	c := check(Wiring, name, len(lost) == 0, "every function from "+p.within(p.vendorLibrary()), firstNonEmpty(strings.Join(lost, "; "), "every function from it"+after(shadowed)))
	c.Hint = hintUnless(c, "another vendor comes first; put this one first in ASCEND_CUSTOM_OPP_PATH (invar env), or remove the other: "+run.Getenv(p.Env, "ASCEND_CUSTOM_OPP_PATH"))
	return c
}

func after(shadowed []string) string {
	if len(shadowed) == 0 {
		return ""
	}
	return ", before " + strings.Join(shadowed, ", ")
}

// vllmVendor is the vendor that vllm-ascend puts first when it starts.
func (p *prober) vllmVendor() string { return vllmascend.Vendor(p.facts.NPU.VLLMAscend) }

// contrary notes variables that work against determinism. Base images of CANN
// set some of them.
func (p *prober) contrary() {
	off, on := []string{"0", "false", "off"}, []string{"1", "true", "on"}
	for _, v := range []struct {
		name string
		bad  []string
		text string
	}{
		{"LCCL_DETERMINISTIC", off, "vllm-ascend sets it to 1 in batch-invariant mode; other programs do not"},
		{"ATB_MATMUL_SHUFFLE_K_ENABLE", on, "products of ATB shuffle their reduction; vllm-ascend leaves it as it is: export ATB_MATMUL_SHUFFLE_K_ENABLE=0"},
		{"HCCL_DETERMINISTIC", off, "vllm-ascend sets it to strict in batch-invariant mode; other programs do not"},
	} {
		value := run.Getenv(p.Env, v.name)
		if slices.Contains(v.bad, strings.ToLower(strings.TrimSpace(value))) {
			p.extra = append(p.extra, Observation{"environment", v.name + "=" + value + ": " + v.text})
		}
	}
}

// choice says what vllm_ascend.batch_invariant would do in this environment,
// which it tells at debug level only.
func (p *prober) choice() {
	text := "with VLLM_BATCH_INVARIANT=1 it takes these AscendC operators, attention included"
	if p.facts.NPU.Triton {
		text += ", and Triton's for addmm, bmm and softmax"
	}
	p.extra = append(p.extra, Observation{"vllm-ascend", text})
}

// fallback says what vllm-ascend would do where the import fails: it passes over
// that, and tells nobody which operators it takes instead.
func (p *prober) fallback() {
	text := "it passes over a failed import without a word: with VLLM_BATCH_INVARIANT=1 "
	if p.triton() {
		text += "it takes Triton's operators for mm, matmul, linear, addmm, bmm and softmax, and attention is not covered"
	} else {
		text += "it finds no Triton either, warns once, and serves without batch invariance"
	}
	p.extra = append(p.extra, Observation{"vllm-ascend", text})
}

func (p *prober) triton() bool {
	if p.facts != nil && p.facts.NPU != nil {
		return p.facts.NPU.Triton
	}
	return slices.ContainsFunc(p.receipt.Python.Paths, func(dir string) bool { return exists(filepath.Join(dir, "triton", "__init__.py")) })
}

// simulated labels what ran on a device that is none.
func (p *prober) simulated() string {
	if p.facts == nil || p.facts.NPU == nil {
		return ""
	}
	return p.facts.NPU.Simulated
}

// onSimulated refuses to count a simulated device for what was required.
func onSimulated(res Result, require int) error {
	for _, l := range res.Levels {
		if l.Level <= require && l.Status != report.Pass {
			return problem(res, l) // what failed there fails all the same
		}
	}
	return report.Problemf(report.Inconclusive, "probe level %d is required and ran on a %s", require, res.Simulated).
		WithWant("an NPU", "a look-alike of CANN, which says nothing about hardware").
		WithHint("run the same on a machine with an NPU: invar probe --full --record DIR")
}
