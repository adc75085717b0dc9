package doctor

import (
	"fmt"
	"strings"

	"github.com/invar-ops/invar/internal/version"
)

func judgePython(j *judge, n Need) Finding {
	f := n.finding()
	f.Want = ">= " + j.t.Python.Minimum
	p := j.f.Python
	if p.Exe == "" {
		got := "none"
		if p.Problem != "" {
			got = p.Problem
		} else if len(p.Seen) > 0 {
			var seen []string
			for _, c := range p.Seen {
				seen = append(seen, c.Exe+": "+c.Reason)
			}
			got = strings.Join(seen, "; ")
		}
		return f.unmet(n.Level, got, j.install("python", "venv")+", or pass --python")
	}
	f.Got = p.Version + " at " + p.Exe
	if !version.Within(version.PEP440, f.Want, p.Version) {
		return f.unmet(n.Level, f.Got, "pass --python with a newer one, or let uv bring one: uv python install 3.12")
	}
	return f
}

// judgeVenv: the tools to make an environment, where one has to be made.
func judgeVenv(j *judge, n Need) Finding {
	f := n.finding()
	f.Want = "ensurepip or uv, to make an environment with torch"
	p := j.f.Python
	switch {
	case p.HasTorch():
		return f.gotf("not needed: %s has torch", p.Exe)
	case j.f.Tools["uv"] != "":
		return f.gotf("%s", j.f.Tools["uv"])
	case p.Ensurepip:
		return f.gotf("ensurepip of %s", p.Exe)
	}
	return f.unmet(n.Level, "neither", j.install("venv"))
}

// judgePip: a way to install into the interpreter itself.
func judgePip(j *judge, n Need) Finding {
	f := n.finding()
	p := j.f.Python
	if d, ok := p.Dists["pip"]; ok {
		return f.gotf("pip %s in %s", d.Version, d.Dir)
	}
	if uv := j.f.Tools["uv"]; uv != "" {
		return f.gotf("%s", uv)
	}
	if p.Exe == "" {
		return f.unmet(n.Level, "no Python", j.install("pip"))
	}
	if p.Ensurepip {
		return f.unmet("warn", p.Exe+" has no pip", p.Exe+" -m ensurepip --upgrade")
	}
	return f.unmet(n.Level, p.Exe+" has no pip", j.install("pip")+"   or name the Python that has it with --python")
}

// judgeTorch: a torch of the target's range; where invar can make an
// environment its absence is said and stops nothing.
func judgeTorch(j *judge, n Need) Finding {
	f := n.finding()
	f.Want, f.Source = j.t.Python.Torch, j.t.Python.Source
	p := j.f.Python
	if !p.HasTorch() {
		got := "not installed"
		if p.Exe != "" {
			got += " in " + p.Exe
		}
		if len(j.t.Python.Install) > 0 {
			size := ""
			if j.t.Python.Download != "" {
				size = " (" + j.t.Python.Download + ")"
			}
			return f.unmet("warn", got, "invar build makes an environment with "+j.t.Python.Install[0]+size+", or pass --python with one that has torch")
		}
		return f.unmet(n.Level, got, j.torchCommand())
	}
	f.Got = p.Torch.Version + " in " + p.Torch.Dir
	if f.Want != "" && !version.Within(version.PEP440, f.Want, p.Torch.Version) {
		return f.unmet(n.Level, f.Got, p.installer()+" 'torch"+strings.ReplaceAll(f.Want, " ", "")+"', or pass another --python")
	}
	return f
}

// torchCommand installs torch for the target: for Ascend the pair of the
// nearest row, else the range.
func (j *judge) torchCommand() string {
	if j.t.Flavour == "ascend" {
		if all := j.d.Matrix.nearest(j.rows(), j.have()); len(all) > 0 {
			return strings.Join(j.pipCommand(all[0], []string{"torch", "torch_npu"}), "; ")
		}
	}
	return j.f.Python.installer() + " 'torch" + strings.ReplaceAll(j.t.Python.Torch, " ", "") + "'"
}

func judgePythonHeaders(j *judge, n Need) Finding {
	f := n.finding()
	p := j.f.Python
	if p.Exe == "" {
		return f.unmet(n.Level, "no Python", j.install("python", "python-headers"))
	}
	f.Want = orText(p.IncludeAt, n.Want)
	if p.HasH {
		return f.gotf("%s", p.IncludeAt)
	}
	hint := j.install("python-headers")
	if !strings.HasPrefix(p.IncludeAt, "/usr/include/") {
		hint = fmt.Sprintf("this interpreter is not the system's: the headers have to come with it, into %s (conda install python=%s, pyenv install %s, or another --python)", p.IncludeAt, p.Minor(), p.Version)
	}
	return f.unmet(n.Level, "missing", hint)
}

func judgePackage(j *judge, n Need) Finding {
	f := n.finding()
	f.Want = orText(n.Want, "installed")
	d, ok := j.f.Python.Dists[n.Item]
	if !ok {
		got := "not installed"
		if j.f.Python.Exe != "" {
			got += " in " + j.f.Python.Exe
		}
		return f.unmet(n.Level, got, j.packageCommand(n))
	}
	f.Got = d.Version + " in " + d.Dir
	if n.Want != "" && !version.Within(version.PEP440, n.Want, d.Version) {
		return f.unmet(n.Level, f.Got, j.packageCommand(n))
	}
	return f
}

// packageCommand: what belongs to the release matrix is installed as a set.
func (j *judge) packageCommand(n Need) string {
	if n.Item == "torch-npu" {
		return j.torchCommand()
	}
	if c := j.install(n.Item); c != "" {
		return c
	}
	return j.f.Python.installer() + " " + n.Item
}

func judgePackageOrTool(j *judge, n Need) Finding {
	if p := j.f.Tools[n.Item]; p != "" {
		return n.finding().gotf("%s", p)
	}
	return judgePackage(j, n)
}
