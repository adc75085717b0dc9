package cuda

import (
	"fmt"
	"strings"

	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/toolchain"
	"github.com/invar-ops/invar/internal/version"
)

// A Question is what a toolkit is judged against.
type Question struct {
	Torch    string             // version of torch, for people
	CUDA     string             // torch.version.cuda; empty for a build without CUDA
	Compiler toolchain.Compiler // that nvcc preprocesses with
	Seen     []Candidate        // places that were passed over
}

// Judge compares the toolkit with torch, its own headers and the host compiler.
// Every line says what was wanted and found, and a command that repairs it; no
// command writes into the user's Python.
func (t Toolkit) Judge(q Question) ([]report.Requirement, error) {
	known, err := Load()
	if err != nil {
		return nil, err
	}
	out := []report.Requirement{t.present(q)}
	if t.NVCC() == "" || t.Fault != "" {
		return out, nil
	}
	out = append(out, t.whole(q), t.readers(q), t.major(q))
	if t.Headers != "" {
		out = append(out, t.ownHeaders(q))
	}
	if t.Wheels != nil {
		out = append(out, t.together(q)...)
	}
	if q.Compiler.Path != "" {
		if r, ok := t.hostCompiler(q, known); ok {
			out = append(out, r)
		}
	}
	return out, nil
}

// Repair is the command that gives a whole toolkit for torch's CUDA.
func Repair(cuda string) string {
	if cuda == "" {
		return "invar build cuda --install-toolkit"
	}
	if ok, why, command := OnIndex(cuda); !ok {
		return why + ": " + command
	}
	return "invar build cuda --install-toolkit   (CUDA " + MinorOf(cuda) + " into invar's own folder, about 310 MB)"
}

func (t Toolkit) present(q Question) report.Requirement {
	r := report.Requirement{Name: "CUDA compiler", Want: "nvcc", Source: "the kernels are CUDA C++", Hint: Repair(q.CUDA)}
	if q.CUDA != "" {
		r.Want = "nvcc of CUDA " + MinorOf(q.CUDA) + ", as torch.version.cuda says"
	}
	var seen []string
	for _, c := range q.Seen {
		seen = append(seen, fmt.Sprintf("%s (%s): %s", c.Home, c.From, c.Reason))
	}
	switch {
	case t.Home == "":
		r.Got = "none in CUDA_HOME, CUDA_PATH, PATH, /usr/local/cuda* and the chosen Python"
		if len(seen) > 0 {
			r.Got = "none; " + strings.Join(seen, "; ")
		}
	case t.Fault != "":
		r.Got = fmt.Sprintf("%s (%s): %s", t.Home, t.From, t.Fault)
	case t.NVCC() == "" && t.Parts["ptxas"] != "":
		r.Got = fmt.Sprintf("%s (%s) has ptxas and no nvcc: it is not a compiler", t.Home, t.From)
	case t.NVCC() == "":
		r.Got = fmt.Sprintf("no bin/nvcc in %s (%s)", t.Home, t.From)
	default:
		r.Got, r.OK = fmt.Sprintf("%s at %s (%s)", t.Banner, t.NVCC(), t.From), true
	}
	return r
}

func (t Toolkit) whole(q Question) report.Requirement {
	r := report.Requirement{Name: "parts of the toolkit", Want: "every part that a compile needs", Source: "nvcc --dryrun", Got: "all in " + t.Home, OK: true}
	if l := t.lacks(false); len(l) > 0 {
		r.Got, r.OK = "not in "+t.Home+": "+strings.Join(t.named(l), ", "), false
		r.Hint = Repair(q.CUDA)
	}
	return r
}

// readers are the programs that read machine code: without them nothing says
// that a kernel has no atomic additions.
func (t Toolkit) readers(q Question) report.Requirement {
	r := report.Requirement{Name: "cuobjdump and nvdisasm", Want: "both, to prove what was compiled", Source: "docs/cuda.md, static proof", Got: "in " + t.Home, OK: true}
	if l := t.lacks(true); len(l) > 0 {
		r.Got, r.OK = "not in "+t.Home+": "+strings.Join(t.named(l), ", "), false
		r.Hint = Repair(q.CUDA)
	}
	return r
}

// named puts the wheel that brings it behind each missing part.
func (t Toolkit) named(missing []string) []string {
	rules, err := loadParts()
	if err != nil {
		return missing
	}
	var out []string
	for _, m := range missing {
		for _, p := range rules.Parts {
			if p.Name == m {
				out = append(out, fmt.Sprintf("%s (%s, of %s)", p.Name, p.Files[0], p.Wheel))
			}
		}
	}
	return out
}

func (t Toolkit) major(q Question) report.Requirement {
	r := report.Requirement{
		Name: "nvcc and torch", Want: "one major version: CUDA " + majorOf(q.CUDA), Source: "torch cpp_extension refuses another major version",
		Got: "nvcc " + t.Version + ", torch " + q.Torch + " with CUDA " + q.CUDA,
		OK:  q.CUDA == "" || majorOf(t.Version) == majorOf(q.CUDA),
	}
	if q.CUDA == "" {
		r.Want, r.Got = "any", "nvcc "+t.Version
	}
	if !r.OK {
		r.Hint = Repair(q.CUDA)
	}
	return r
}

func (t Toolkit) ownHeaders(q Question) report.Requirement {
	r := report.Requirement{
		Name: "nvcc and its headers", Want: "one minor version: CUDA " + MinorOf(t.Version),
		Source: `measured: "CUDA compiler and CUDA toolkit headers are incompatible"`,
		Got:    "nvcc " + t.Version + ", headers of CUDA " + t.Headers + " in " + t.Include(),
		OK:     MinorOf(t.Version) == t.Headers,
	}
	if !r.OK {
		r.Hint = Repair(q.CUDA)
	}
	return r
}

// together compares the wheels that share one folder.
func (t Toolkit) together(q Question) []report.Requirement {
	rules, err := loadParts()
	if err != nil {
		return nil
	}
	var differ []string
	for _, w := range rules.Together {
		if v := t.Wheels[w]; v != "" && MinorOf(v) != MinorOf(t.Version) {
			differ = append(differ, w+" "+v)
		}
	}
	if len(differ) == 0 {
		return nil
	}
	return []report.Requirement{{
		Name: "compiler wheels", Want: "all of CUDA " + MinorOf(t.Version), Got: strings.Join(differ, ", "),
		Source: "they share one folder", Hint: Repair(q.CUDA),
	}}
}

// hostCompiler: the toolkit's own header stops a build, so it comes first; the
// table knows what the header does not.
func (t Toolkit) hostCompiler(q Question, known *Known) (report.Requirement, bool) {
	facts, _ := known.Toolkit(t.Version)
	c := q.Compiler
	want, source := map[string]string{"gcc": facts.GCC, "clang": facts.Clang}[c.Vendor], "table for CUDA "+facts.Version
	limit := map[string]int{"gcc": t.GCCMax, "clang": t.ClangMax}[c.Vendor]
	if limit > 0 {
		lower, _, two := strings.Cut(want, ",")
		if want = fmt.Sprintf("< %d", limit+1); two {
			want = lower + ", " + want
		}
		source = "crt/host_config.h of " + t.Home
	}
	if want == "" {
		return report.Requirement{}, false
	}
	r := report.Requirement{
		Name: "host compiler of nvcc", Want: c.Vendor + " " + want, Source: source,
		Got: fmt.Sprintf("%s %s at %s", c.Vendor, c.Version, c.Path), OK: version.Within(version.Plain, want, c.Version),
	}
	if !r.OK {
		older := limit
		if older == 0 {
			older = 12
		}
		r.Hint = fmt.Sprintf("apt-get install g++-%d, then: CXX=g++-%d invar build cuda", older, older)
		if c.Vendor == "clang" {
			r.Hint = fmt.Sprintf("name an older one: CXX=clang++-%d invar build cuda", older)
		}
	}
	return r, true
}
