package doctor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/target"
	"github.com/invar-ops/invar/internal/version"
)

// judge is one judgement under way: the inputs and what was found so far.
type judge struct {
	t target.Target
	f Facts
	d *Data

	missing []string // items of install.yaml that hints asked for
}

// judges by the kind of a need. Each is pure.
var judges = map[string]func(*judge, Need) Finding{
	"arch": judgeArch, "python": judgePython, "venv": judgeVenv, "torch": judgeTorch,
	"header": judgeHeader, "python-headers": judgePythonHeaders, "package": judgePackage,
	"package-or-tool": judgePackageOrTool, "tool": judgeTool, "compiler": judgeCompiler, "ca": judgeCA, "pip": judgePip,
	"cann": judgeCANN, "cann-headers": judgeCANNHeaders, "cann-compiler": judgeCANNCompiler,
	"nvcc": judgeNVCC, "nvcc-parts": judgeNVCCParts, "cudart": judgeCudart,
	"nvidia-driver": judgeNVIDIADriver, "npu-driver": judgeNPUDriver, "devices": judgeDevices,
}

// Judge says what of t holds on the machine that f describes. It reads nothing
// but its arguments.
func Judge(t target.Target, f Facts, d *Data) Result {
	j := &judge{t: t, f: f, d: d}
	r := Result{Target: t.Name, Title: t.Title, Root: f.Root, System: f.System.Name, Facts: f}
	for _, m := range t.Missing {
		r.Findings = append(r.Findings, Finding{
			ID: "invar", Group: "requirement", For: "build", Status: report.Fail,
			Requirement: report.Requirement{Name: "invar itself", Want: m, Got: "not in this version", Hint: "invar targets shows what this version builds"},
		})
	}
	for _, n := range j.needs() {
		r.Findings = append(r.Findings, judges[n.Kind](j, n))
	}
	r.Findings = append(r.Findings, j.libc()...)
	r.Findings = append(r.Findings, j.cudaFindings()...)
	if t.Flavour == "ascend" {
		var extra []Finding
		r.Nearest, extra = j.matrix()
		r.Findings = append(r.Findings, extra...)
	}
	r.Findings = append(r.Findings, j.environment()...)
	jobs, extra := j.jobs()
	r.Jobs = jobs
	r.Findings = append(r.Findings, extra...)
	r.Findings = append(r.Findings, j.room()...)
	flags, extra := j.container()
	r.Container = flags
	r.Findings = append(r.Findings, extra...)
	if len(j.missing) > 1 {
		r.Install = d.Install.Command(f.System, f.Python, j.missing...)
	}
	return r
}

// needs are those of needs.yaml and of target.yaml, which wins where both name
// the same thing.
func (j *judge) needs() []Need {
	var out []Need
	for _, n := range j.t.Requires {
		kind := n.Kind
		if kind == "toolkit" || kind == "driver" {
			kind = n.Item
		}
		if _, ok := judges[kind]; !ok {
			continue
		}
		out = append(out, Need{ID: n.Item, Name: n.Name, Kind: kind, Item: n.Item, Want: n.Want, For: n.For, Level: "fail", Source: n.Source, hint: n.Hint})
	}
	for _, n := range j.d.Needs {
		twice := slices.ContainsFunc(out, func(o Need) bool { return o.Kind == n.Kind && o.Item == n.Item })
		if slices.Contains(n.Flavours, j.t.Flavour) && !twice {
			out = append(out, n)
		}
	}
	return out
}

// install is the command for a hint; what was asked for is remembered, so that
// everything can be installed at once.
func (j *judge) install(items ...string) string {
	for _, it := range items {
		if !slices.Contains(j.missing, it) {
			j.missing = append(j.missing, it)
		}
	}
	return j.d.Install.Command(j.f.System, j.f.Python, items...)
}

func judgeArch(j *judge, n Need) Finding {
	f := n.finding()
	f.Want = strings.Join(j.t.Arches, " or ")
	if j.f.Arch == "" {
		return f.unclear("the root holds no C library that tells")
	}
	f.Got = j.f.Arch
	if !slices.Contains(j.t.Arches, j.f.Arch) {
		return f.unmet(n.Level, j.f.Arch, "build on a machine of that architecture")
	}
	return f
}

func judgeTool(j *judge, n Need) Finding {
	f := n.finding()
	f.Want = "on PATH"
	p := j.f.Tools[n.Item]
	if p == "" {
		return f.unmet(n.Level, "not found", orText(j.install(n.Item), n.hint))
	}
	return f.gotf("%s", p)
}

func judgeHeader(j *judge, n Need) Finding {
	f := n.finding()
	p := j.f.Headers[n.Want]
	if p == "" {
		return f.unmet(n.Level, "not in /usr/include", j.install(n.Item))
	}
	return f.gotf("%s", p)
}

func judgeCA(j *judge, n Need) Finding {
	f := n.finding()
	f.Want = "a bundle of trusted certificates"
	if len(j.f.CABundles) == 0 {
		for _, name := range caVariables {
			if j.f.Env(name) != "" {
				return f.gotf("%s=%s", name, j.f.Env(name))
			}
		}
		return f.unmet(n.Level, "none", j.install("ca"))
	}
	return f.gotf("%s", j.f.CABundles[0])
}

// judgeCompiler takes "gcc >= 11; clang >= 16" as well as one range for all.
func judgeCompiler(j *judge, n Need) Finding {
	f := n.finding()
	c := j.f.Compiler
	if c.Path == "" {
		return f.unmet(n.Level, "none ("+c.Reason+")", orText(j.install("c++"), n.hint))
	}
	f.Got = fmt.Sprintf("%s %s at %s", c.Vendor, c.Version, c.Path)
	if c.Version == "" {
		return f.unclear(c.Path + ", and no file tells its version")
	}
	want := n.Want
	for part := range strings.SplitSeq(n.Want, ";") {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(part), c.Vendor+" "); ok {
			want = rest
		}
	}
	if want != "" && !version.Within(version.Plain, want, c.Version) {
		return f.unmet(n.Level, f.Got, "install a newer compiler and name it: export CXX=g++-14 ("+orText(j.install("c++"), n.hint)+")")
	}
	return f
}
