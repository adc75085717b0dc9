package doctor

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/invar-ops/invar/internal/cuda"
	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/version"
)

// cudaFindings compare toolkit, torch, host compiler, driver and chip with
// each other.
func (j *judge) cudaFindings() []Finding {
	if j.t.Flavour != "cuda" {
		return nil
	}
	var out []Finding
	t, ok := j.toolkit()
	if ok && t.Version != "" {
		out = append(out, j.torchAgainst(t)...)
		out = append(out, j.hostCompiler(t)...)
		out = append(out, j.archAgainst(t)...)
	}
	out = append(out, j.torchWheel()...)
	if k, u := j.f.NVIDIA.Kernel, j.f.NVIDIA.User; k != "" && u != "" && k != u {
		out = append(out, j.versions("driver-parts", "driver parts", "one version of module and libcuda", "", false).
			unmet("warn", "module "+k+", libcuda "+u, "reboot, or restart the container, after a driver update"))
	}
	return out
}

func (j *judge) versions(id, name, want, source string, probe bool) Finding {
	f := Finding{ID: id, Group: "versions", For: "build", Status: report.Pass, Requirement: report.Requirement{Name: name, Want: want, Source: source, OK: true}}
	if probe {
		f.For = "probe"
	}
	return f
}

// torchAgainst: torch refuses another major of nvcc and only warns about
// another minor; CUDA's own headers refuse a mixture of minors.
func (j *judge) torchAgainst(t Toolkit) []Finding {
	cuda := j.f.Python.CUDA
	if !j.f.Python.HasTorch() {
		return nil
	}
	f := j.versions("nvcc-torch", "nvcc and torch", "CUDA "+orText(cuda, "build of torch"), "torch cpp_extension; measured with nvcc wheels", false)
	f.Got = "nvcc " + t.Version + ", torch " + j.f.Python.Torch.Version
	if cuda == "" {
		return []Finding{f.unmet("fail", f.Got+", a build without CUDA", j.f.Python.installer()+" --force-reinstall torch   (from the index of your CUDA)")}
	}
	a, err1 := version.Parse(version.CUDA, t.Version)
	b, err2 := version.Parse(version.CUDA, cuda)
	switch {
	case err1 != nil || err2 != nil:
		return []Finding{f.unclear(f.Got)}
	case a.Major() != b.Major():
		return []Finding{f.unmet("fail", f.Got, "take a toolkit of CUDA "+cuda+": "+j.compilerHint())}
	case a.Minor() != b.Minor() && t.From == fromWheels:
		return []Finding{f.unmet("fail", f.Got, "nvcc and headers from wheels must be of one minor: "+j.compilerHint())}
	case a.Minor() != b.Minor():
		return []Finding{f.unmet("warn", f.Got, "works within one major; for the same minor: "+j.compilerHint())}
	}
	return []Finding{f}
}

// hostCompiler: the toolkit's own header is the first reference, the table the
// second; where they disagree both are shown.
func (j *judge) hostCompiler(t Toolkit) []Finding {
	c := j.f.Compiler
	facts, ok := j.d.CUDA.Toolkit(t.Version)
	if c.Path == "" || c.Version == "" || (!ok && t.GCCMax == 0) {
		return nil
	}
	want := map[string]string{"gcc": facts.GCC, "clang": facts.Clang}[c.Vendor]
	source := "torch cpp_extension, table for CUDA " + facts.Version
	var out []Finding
	if t.GCCMax > 0 && c.Vendor == "gcc" {
		own := fmt.Sprintf("< %d", t.GCCMax+1)
		if tail := want[strings.LastIndex(want, ",")+1:]; want != "" && strings.TrimSpace(tail) != own {
			d := j.versions("references", "references", "one answer", source, false)
			out = append(out, d.unmet("warn", "host compilers of CUDA "+t.Version+": its header says gcc "+own+", the table says gcc "+want, "the header is what stops a build"))
		}
		want, source = own, "crt/host_config.h of "+t.Home
	}
	if want == "" {
		return out
	}
	f := j.versions("nvcc-compiler", "nvcc and "+c.Vendor, c.Vendor+" "+want, source, false)
	f.Got = c.Vendor + " " + c.Version + " at " + c.Path
	if !version.Within(version.Plain, want, c.Version) {
		f = f.unmet("fail", f.Got, "install an older one and name it: export CXX=g++-"+olderGCC(want)+" NVCC_CCBIN=g++-"+olderGCC(want)+" ("+j.install("c++")+"-"+olderGCC(want)+")")
	}
	return append(out, f)
}

var upper = regexp.MustCompile(`<\s*(\d+)`)

// olderGCC is the newest major below the upper bound of a range.
func olderGCC(want string) string {
	if m := upper.FindStringSubmatch(want); m != nil {
		return itoa(atoi(m[1]) - 1)
	}
	return "12"
}

var smRE = regexp.MustCompile(`^sm_(\d+)[af]?$`)

// chips are the compute capabilities that detection named, as 90 or 120.
func (j *judge) chips() []int {
	var out []int
	for _, s := range j.f.SoCs {
		if m := smRE.FindStringSubmatch(s); m != nil {
			n, _ := strconv.Atoi(m[1])
			out = append(out, n)
		}
	}
	return out
}

// listed are the architectures in TORCH_CUDA_ARCH_LIST, which names what is
// built where no GPU is. Words that mean nothing are left to the plan.
func (j *judge) listed() []int {
	var out []int
	split := func(r rune) bool { return strings.ContainsRune("; ,", r) }
	for _, word := range strings.FieldsFunc(j.f.Env("TORCH_CUDA_ARCH_LIST"), split) {
		arches, err := cuda.ParseList(word)
		if err != nil {
			continue
		}
		for _, a := range arches {
			out = append(out, a.CC)
		}
	}
	return out
}

func (j *judge) archAgainst(t Toolkit) []Finding {
	facts, ok := j.d.CUDA.Toolkit(t.Version)
	if !ok {
		return nil
	}
	all := append(j.chips(), j.listed()...)
	slices.Sort(all)
	var out []Finding
	for _, arch := range slices.Compact(all) {
		f := j.versions("nvcc-arch", "nvcc and sm_"+itoa(arch), "a toolkit that compiles sm_"+itoa(arch), "CUDA release notes", false)
		f.Got = "CUDA " + t.Version
		switch with := j.d.CUDA.ForArch(arch); {
		case slices.Contains(facts.Arches, arch):
		case len(with) == 0:
			f = f.unclear("sm_" + itoa(arch) + " is in no toolkit that is listed (newest " + j.d.CUDA.Toolkits[len(j.d.CUDA.Toolkits)-1].Version + ")")
		default:
			f = f.unmet("fail", f.Got+": Unsupported gpu architecture 'compute_"+itoa(arch)+"'", "use a toolkit from "+with[0]+" to "+with[len(with)-1])
		}
		out = append(out, f)
	}
	return out
}

// torchWheel: the build of torch that is installed against the chip.
func (j *judge) torchWheel() []Finding {
	p := j.f.Python
	if !p.HasTorch() || p.CUDA == "" {
		return nil
	}
	cuda, err := version.Parse(version.CUDA, p.CUDA)
	if err != nil {
		return nil
	}
	var out []Finding
	for _, w := range j.d.CUDA.WheelsOf(p.Torch.Version) {
		if w.CUDA != cuda.Base(2) || len(w.Arches) == 0 {
			continue
		}
		for _, arch := range j.chips() {
			f := j.versions("torch-arch", "torch and sm_"+itoa(arch), "kernels for sm_"+itoa(arch), w.Source, true)
			f.Got = fmt.Sprintf("torch %s for CUDA %s: %v", p.Torch.Version, w.CUDA, w.Arches)
			if !runsOn(w.Arches, arch) {
				f = f.unmet("fail", f.Got, "take a torch whose wheels have it: no kernel image is available for execution on the device otherwise")
			}
			out = append(out, f)
		}
	}
	return out
}

// runsOn: code for X.Y runs on X.Z with Z >= Y and never across majors.
func runsOn(arches []int, chip int) bool {
	return slices.ContainsFunc(arches, func(a int) bool { return a/10 == chip/10 && a <= chip })
}
