package plan

import (
	"fmt"
	"strings"

	"github.com/invar-ops/invar/internal/cuda"
	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/target"
	"github.com/invar-ops/invar/internal/version"
)

// cudaNeeds judges everything about the GPU part before anything is compiled.
func cudaNeeds(t target.Target, f Facts) []report.Requirement {
	c := f.CUDA
	if t.CUDA == nil || c == nil {
		return nil
	}
	var out []report.Requirement
	if f.Python.HasTorch() {
		out = append(out, cudaTorch(f))
	}
	switch {
	case c.Recipe != nil:
		out = append(out, report.Requirement{
			Name: "CUDA compiler", Want: "nvcc of CUDA " + c.Recipe.Minor, Got: "to be installed in " + c.Recipe.Dir, OK: true,
			Source: "--install-toolkit",
		})
	case c.Torch != "" || c.Toolkit.Home != "" || !f.Python.HasTorch():
		judged, err := c.Toolkit.Judge(cuda.Question{Torch: f.Python.Torch.Version, CUDA: c.Torch, Compiler: f.Compiler, Seen: c.Seen})
		if err != nil {
			judged = []report.Requirement{{Name: "CUDA compiler", Want: "facts about toolkits", Got: err.Error()}}
		}
		out = append(out, judged...)
	}
	out = append(out, archNeeds(t, *c)...)
	for _, need := range []func(CUDAFacts) (report.Requirement, bool){driverNeed, ptxNeed} {
		if r, ok := need(*c); ok {
			out = append(out, r)
		}
	}
	return out
}

func cudaTorch(f Facts) report.Requirement {
	v := f.Python.Torch.Version
	r := report.Requirement{
		Name: "torch for CUDA", Want: "a torch built for CUDA", Source: "the CUDA library of stage 2 needs libtorch_cuda.so",
		Got: v + " with CUDA " + f.CUDA.Torch, OK: f.CUDA.Torch != "",
	}
	if !r.OK {
		release, _, _ := strings.Cut(v, "+")
		r.Got = v + " in " + f.Python.Torch.Dir + ", a build without CUDA"
		r.Hint = fmt.Sprintf("%s -m pip install --force-reinstall 'torch==%s' --index-url https://download.pytorch.org/whl/cu130, or build for the CPU: invar build cpu", f.Python.Exe, release)
	}
	return r
}

// archNeeds: the list, and each of its architectures against the kernels and nvcc.
func archNeeds(t target.Target, c CUDAFacts) []report.Requirement {
	minimum := 0
	if a, err := cuda.ParseArch(t.CUDA.Minimum); err == nil {
		minimum = a.CC
	}
	list := report.Requirement{
		Name: "GPU architectures", Want: "those to compile for", Got: cuda.Join(c.Arches) + ", " + c.Why, OK: c.Problem == "",
		Source: "devices, TORCH_CUDA_ARCH_LIST or --arch",
	}
	if !list.OK {
		list.Want = "one or more of " + strings.Join(cuda.Choices(c.Toolkit.Supported, minimum), ", ")
		list.Got, list.Hint = c.Problem, c.Hint
		return []report.Requirement{list}
	}
	out := []report.Requirement{list}
	known, err := cuda.Load()
	if err != nil {
		return append(out, report.Requirement{Name: "GPU architectures", Want: "facts about toolkits", Got: err.Error()})
	}
	for _, a := range c.Arches {
		if fault, hint := cuda.ArchFault(a, minimum, c.version(), c.Toolkit.Supported, known); fault != "" {
			out = append(out, report.Requirement{
				Name: "GPU architecture " + a.Dotted(), Want: "one that the kernels and nvcc know", Got: fault,
				Hint: hint, Source: c.Why,
			})
		}
	}
	if missing := cuda.Unserved(c.Arches, c.Devices); len(missing) > 0 {
		out = append(out, unserved(c, missing))
	}
	return out
}

func unserved(c CUDAFacts, missing []int) report.Requirement {
	var own []string
	for _, d := range missing {
		own = append(own, fmt.Sprintf("%d.%d", d/10, d%10))
	}
	return report.Requirement{
		Name: "GPUs of this host", Want: "code that runs on each of them: " + strings.Join(own, ", "),
		Got:    "code for " + cuda.Join(c.Arches) + ", which does not",
		Hint:   "add them: --arch " + cuda.Join(c.Arches) + "," + strings.Join(own, ","),
		Source: "machine code runs on its own and later minor versions of its major version",
	}
}

// version is that of the toolkit that compiles, also of one that is to be installed.
func (c CUDAFacts) version() string {
	if c.Recipe != nil {
		return c.Recipe.Minor
	}
	return c.Toolkit.Version
}

// driverNeed compares the toolkit with the driver that is there; without one
// nothing runs here anyway.
func driverNeed(c CUDAFacts) (report.Requirement, bool) {
	toolkit := c.version()
	want, ok, err := cuda.DriverFor(toolkit)
	if err != nil || !ok || c.Driver == "" {
		return report.Requirement{}, false
	}
	return report.Requirement{
		Name: "NVIDIA driver", Want: want + " for CUDA " + cuda.MinorOf(toolkit) + ", whose runtime is linked into the operators",
		Got: c.Driver, OK: cuda.Serves(want, c.Driver),
		Hint: "install a newer driver, or a torch and a toolkit of an older CUDA", Source: "CUDA compatibility guide",
	}, true
}

// ptxNeed: a driver compiles no PTX of a newer toolkit, although it runs its
// machine code (minor version compatibility).
func ptxNeed(c CUDAFacts) (report.Requirement, bool) {
	only, toolkit := cuda.OnlyByPTX(c.Arches, c.Devices), cuda.MinorOf(c.version())
	if len(only) == 0 || c.DriverCUDA == "" || toolkit == "" {
		return report.Requirement{}, false
	}
	var own []string
	for _, d := range only {
		own = append(own, fmt.Sprintf("%d.%d", d/10, d%10))
	}
	return report.Requirement{
		Name: "PTX and the driver", Want: "a driver for CUDA " + toolkit + ", which compiles the PTX for " + strings.Join(own, ", "),
		Got: "driver " + c.Driver + " for CUDA " + c.DriverCUDA, OK: version.Within(version.CUDA, ">= "+toolkit, c.DriverCUDA),
		Hint:   "ask for machine code: --arch " + cuda.Join(c.Arches) + "," + strings.Join(own, ","),
		Source: `otherwise: "the provided PTX was compiled with an unsupported toolchain"`,
	}, true
}
