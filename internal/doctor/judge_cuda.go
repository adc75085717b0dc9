package doctor

import (
	"strings"

	"github.com/invar-ops/invar/internal/version"
)

// toolkit is the one whose compiler a build would use: the order of the list
// is the order in which torch asks.
func (j *judge) toolkit() (Toolkit, bool) {
	for _, t := range j.f.Toolkits {
		if t.NVCC != "" {
			return t, true
		}
	}
	return Toolkit{}, false
}

// wantedCUDA is the CUDA of the installed torch, else the newest that a listed
// torch comes with.
func (j *judge) wantedCUDA() string {
	if v := j.f.Python.CUDA; v != "" {
		return v
	}
	all := j.d.CUDA.Wheels
	return all[len(all)-1].CUDA
}

func (j *judge) compilerHint() string {
	return j.d.CUDA.CompilerHint(j.wantedCUDA())
}

func judgeNVCC(j *judge, n Need) Finding {
	f := n.finding()
	f.Want = orText(n.Want, "nvcc")
	if j.f.Python.CUDA != "" {
		f.Want = "nvcc of CUDA " + j.f.Python.CUDA + " (torch.version.cuda)"
	}
	t, ok := j.toolkit()
	if !ok {
		got := "none"
		for _, k := range j.f.Toolkits {
			if k.From != fromWheels {
				got = "no nvcc in " + k.Home + " (" + k.From + ")"
				break
			}
		}
		return f.unmet(n.Level, got, j.compilerHint())
	}
	if t.Version == "" {
		return f.unclear(t.NVCC + ", and no file there tells its version")
	}
	return f.gotf("%s at %s (%s)", t.Version, t.NVCC, t.From)
}

func judgeNVCCParts(j *judge, n Need) Finding {
	f := n.finding()
	t, ok := j.toolkit()
	if !ok {
		return f.unmet(n.Level, "no nvcc", j.compilerHint())
	}
	var missing []string
	for _, p := range []struct {
		ok   bool
		name string
	}{{t.CICC, "nvvm/bin/cicc"}, {t.CRT, "include/crt/host_config.h"}, {t.Runtime, "include/cuda_runtime.h"}} {
		if !p.ok {
			missing = append(missing, p.name)
		}
	}
	if len(missing) > 0 {
		return f.unmet(n.Level, "not in "+t.Home+": "+strings.Join(missing, ", "), j.compilerHint())
	}
	return f.gotf("all in %s", t.Home)
}

func judgeCudart(j *judge, n Need) Finding {
	f := n.finding()
	for _, t := range j.f.Toolkits {
		if t.Cudart != "" {
			return f.gotf("%s", t.Cudart)
		}
	}
	for _, t := range j.f.Toolkits {
		if t.Soname != "" {
			link := "ln -s " + base(t.Soname) + " " + strings.TrimRight(t.Soname, "0123456789.")
			if t.From == fromWheels { // a user's Python is no place to write into
				link = "invar needs none; for other builds: invar build cuda makes a folder of links with one, outside of this Python, and prints it as a CUDA_HOME"
			}
			return f.unmet(n.Level, "only "+t.Soname, link)
		}
	}
	return f.unmet(n.Level, "no libcudart at all", j.compilerHint())
}

func base(p string) string { return p[strings.LastIndex(p, "/")+1:] }

// A cudaRuntime is one that processes here load, or will: the one that
// torch brings, and the one that is linked into the operators.
type cudaRuntime struct{ version, of string }

// newestRuntime is the one that asks most of the driver. The operators hold the
// runtime of the toolkit that compiled them, whatever torch was built for.
func (j *judge) newestRuntime() cudaRuntime {
	newest := cudaRuntime{j.wantedCUDA(), "torch"}
	all := []cudaRuntime{{j.f.NVIDIA.Operators, "the installed operators"}}
	if t, ok := j.toolkit(); ok {
		all = append(all, cudaRuntime{t.Version, "nvcc at " + t.NVCC + ", whose runtime is linked into the operators"})
	}
	for _, r := range all {
		a, aerr := version.Parse(version.CUDA, newest.version)
		b, berr := version.Parse(version.CUDA, r.version)
		if berr == nil && (aerr != nil || version.Less(version.MustParse(version.CUDA, a.Base(2)), version.MustParse(version.CUDA, b.Base(2)))) {
			newest = r
		}
	}
	return newest
}

func judgeNVIDIADriver(j *judge, n Need) Finding {
	f := n.finding()
	want := j.newestRuntime()
	facts, known := j.d.CUDA.Toolkit(want.version)
	if known {
		f.Want = facts.Driver + " (CUDA " + want.version + " of " + want.of + ")"
	}
	have := orText(j.f.NVIDIA.Kernel, j.f.NVIDIA.User)
	switch {
	case have == "":
		return f.unmet(n.Level, "none: probe levels 6 and 7 cannot run here", "not needed to build; install an NVIDIA driver "+facts.Driver+", or start the container with --gpus all")
	case !known:
		return f.unclear(have + ", and nothing is known of CUDA " + want.version)
	}
	f.Got = have
	if !version.Within(version.Driver, facts.Driver, have) {
		return f.unmet(n.Level, have, "install a driver "+facts.Driver+", or build with a toolkit and a torch of an older CUDA: kernels of a toolkit that is newer than the driver do not load")
	}
	return f
}

func judgeDevices(j *judge, n Need) Finding {
	f := n.finding()
	fam, ok := j.family()
	if !ok {
		return f.unclear("no family of " + j.t.Name + " is known")
	}
	f.Want = fam.Device
	got := j.found(fam.Device)
	if n.Item == "cuda" && len(got) == 0 {
		got = j.f.NVIDIA.GPUs
	}
	if len(got) == 0 {
		return f.unmet(n.Level, "none: probe levels 6 and 7 cannot run here", "not needed to build; probe again on a machine with one, or pass the devices to the container")
	}
	return f.gotf("%d: %s", len(got), strings.Join(got, " "))
}
