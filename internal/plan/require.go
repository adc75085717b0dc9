package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/invar-ops/invar/internal/python"
	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/run"
	"github.com/invar-ops/invar/internal/target"
	"github.com/invar-ops/invar/internal/version"
)

// requirements judges everything that the build of t needs, good and bad.
func requirements(t target.Target, f Facts, p Plan) []report.Requirement {
	var out []report.Requirement
	for _, m := range t.Missing {
		out = append(out, report.Requirement{
			Name: "invar itself", Want: m, Got: "not in this version",
			Hint: "invar targets shows what this version builds",
		})
	}
	out = append(out, archNeed(t, f), pythonNeed(t, f, p))
	if p.Recipe == nil && f.Python.Exe != "" {
		out = append(out, torchNeed(t, f))
	}
	if f.Wheelhouse.Dir != "" {
		out = append(out, wheelhouseNeed(f.Wheelhouse, p))
	}
	for _, n := range t.Requires {
		switch n.Kind {
		case "compiler":
			out = append(out, compilerNeed(n, f))
		case "package":
			out = append(out, packageNeed(n, f))
		case "toolkit":
			if f.Release != nil {
				out = append(out, f.Release.cannNeed(n))
			}
		}
	}
	return append(out, cudaNeeds(t, f)...)
}

func archNeed(t target.Target, f Facts) report.Requirement {
	return report.Requirement{
		Name: "architecture", Want: strings.Join(t.Arches, " or "), Got: f.Arch,
		OK: slices.Contains(t.Arches, f.Arch), Hint: "build on a machine of that architecture",
	}
}

func pythonNeed(t target.Target, f Facts, p Plan) report.Requirement {
	r := report.Requirement{Name: "Python", Want: ">= " + t.Python.Minimum, Source: t.Python.Source}
	py := f.Python
	if p.Recipe != nil {
		py = f.Base
	}
	if py.Exe == "" {
		r.Got = "none"
		if len(t.Python.Install) == 0 { // invar makes no environment for it
			r.Want += ", with torch " + t.Python.Torch
		}
		if len(f.Candidates) > 0 {
			var seen []string
			for _, c := range f.Candidates {
				seen = append(seen, c.Exe+": "+c.Reason)
			}
			r.Got = strings.Join(seen, "; ")
		}
		r.Hint = "apt-get install python3 python3-venv   (dnf install python3), or pass --python"
		return r
	}
	r.Got = py.Version + " at " + py.Exe
	r.OK = inRange(version.PEP440, ">= "+t.Python.Minimum, py.Version)
	r.Hint = "pass --python with a newer one"
	return r
}

func torchNeed(t target.Target, f Facts) report.Requirement {
	r := report.Requirement{Name: "torch", Want: t.Python.Torch, Source: t.Python.Source, Got: "not installed in " + f.Python.Exe}
	if f.Python.HasTorch() {
		r.Got = f.Python.Torch.Version + " in " + f.Python.Torch.Dir
		r.OK = inRange(version.PEP440, t.Python.Torch, f.Python.Torch.Version)
	}
	r.Hint = f.Python.Exe + " -m pip install 'torch" + strings.ReplaceAll(t.Python.Torch, " ", "") + "', or pass another --python"
	return r
}

// wheelhouseNeed wants the folder to be there, and to hold torch where nothing
// but the folder may be asked.
func wheelhouseNeed(w python.Wheelhouse, p Plan) report.Requirement {
	r := report.Requirement{
		Name: "wheelhouse", Want: "a folder with wheels", OK: w.Reason == "",
		Got: fmt.Sprintf("%d wheels in %s", w.Wheels, w.Dir), Hint: "pass --wheelhouse with a folder that pip download filled",
	}
	if w.Reason != "" {
		r.Got = w.Reason
	}
	if p.Recipe != nil && p.Recipe.Offline && !w.Torch {
		r.Want, r.OK = "a folder with a wheel of torch, for --offline", false
		r.Hint = "python3 -m pip download -d " + run.Quote(w.Dir) + " " + run.Quote(p.Recipe.Packages[0]) + " on a machine with a network"
	}
	return r
}

func compilerNeed(n target.Need, f Facts) report.Requirement {
	r := report.Requirement{Name: n.Name, Want: n.Want, Hint: n.Hint, Source: n.Source}
	if f.Compiler.Path == "" {
		var seen []string
		for _, c := range f.CompilerReasons {
			seen = append(seen, c.Command+": "+c.Reason)
		}
		r.Got = "none (" + strings.Join(seen, "; ") + ")"
		return r
	}
	r.Got = fmt.Sprintf("%s %s at %s", f.Compiler.Vendor, f.Compiler.Version, f.Compiler.Path)
	// A need may name one vendor: "gcc" and "clang" count their versions apart.
	want := n.Want
	for part := range strings.SplitSeq(n.Want, ";") {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(part), f.Compiler.Vendor+" "); ok {
			want = rest
		}
	}
	r.OK = inRange(version.Plain, want, f.Compiler.Version)
	return r
}

func packageNeed(n target.Need, f Facts) report.Requirement {
	r := report.Requirement{Name: n.Name, Want: n.Want, Hint: n.Hint, Source: n.Source, Got: "not installed"}
	if v := f.Packages[n.Item]; v != "" {
		r.Got, r.OK = v, inRange(version.PEP440, n.Want, v)
	}
	return r
}

// inRange is true where nothing is wanted.
func inRange(kind version.Kind, want, got string) bool {
	return want == "" || version.Within(kind, want, got)
}
