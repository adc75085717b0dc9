package doctor

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/invar-ops/invar/internal/python"
	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/version"
)

func atoi(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0
	}
	return n
}

func itoa(n int) string { return strconv.Itoa(n) }

// python is the interpreter that a build would take, and what is in it.
func (g *gatherer) python(ctx context.Context) (Python, error) {
	var p Python
	var err error
	if g.root.Live() {
		p, err = g.livePython(ctx)
	} else {
		p, err = g.rootedPython()
	}
	if err != nil || p.Exe == "" {
		return p, err
	}
	g.describe(&p)
	return p, nil
}

// livePython asks the same code as a build does, so that both agree.
func (g *gatherer) livePython(ctx context.Context) (Python, error) {
	o := python.Options{Exe: g.o.Python, Env: g.o.Env, Home: g.homeOf(), Runner: g.o.Runner}
	py, seen, err := python.Find(ctx, o)
	if err != nil {
		if ctx.Err() == nil && g.o.Python == "" { // a VIRTUAL_ENV that is gone is a finding, not an end
			return Python{Problem: err.Error()}, nil
		}
		return Python{}, err
	}
	if py.Exe != "" {
		return Python{Python: py, Seen: seen, Base: !py.HasTorch()}, nil
	}
	base, more, err := python.Base(ctx, o, atoi(minorOf(g.t.Python.Minimum)))
	return Python{Python: base, Seen: append(seen, more...), Base: true}, err
}

// minorOf is "10" of "3.10".
func minorOf(v string) string {
	_, after, _ := strings.Cut(v, ".")
	out, _, _ := strings.Cut(after, ".")
	return out
}

// pythonPlaces are where images keep interpreters that PATH does not name.
var pythonPlaces = []string{
	"/usr/local/python3*/bin/python3", "/opt/*/bin/python3", "/opt/*/*/bin/python3",
	"/venv/bin/python3", "/*/.venv/bin/python3", "/root/.venv/bin/python3", "/root/*conda*/bin/python3",
	"/usr/bin/python3.[0-9]*", "/usr/local/bin/python3.[0-9]*",
}

func (g *gatherer) rootedPython() (Python, error) {
	if g.o.Python != "" {
		p, ok := g.inspect(g.o.Python)
		if !ok {
			return Python{}, report.Problemf(report.Unmet, "--python %s: no interpreter there below %s", g.o.Python, g.root.Dir())
		}
		return p, nil
	}
	var places []string
	for dir := range strings.SplitSeq(g.path(), ":") {
		places = append(places, dir+"/python3")
	}
	for _, pattern := range pythonPlaces {
		places = append(places, g.root.Glob(pattern)...)
	}
	var best Python
	for _, exe := range places {
		p, ok := g.inspect(exe)
		if !ok {
			continue
		}
		if p.HasTorch() {
			p.Seen = best.Seen
			return p, nil
		}
		seen := append(best.Seen, python.Candidate{Exe: exe, Reason: p.Version + ", torch is not installed"})
		if best.Exe == "" || (!newEnough(best, g.t.Python.Minimum) && newEnough(p, g.t.Python.Minimum)) {
			best = p
		}
		best.Seen, best.Base = seen, true
	}
	return best, nil
}

func newEnough(p Python, minimum string) bool {
	return version.Within(version.PEP440, ">= "+minimum, p.Version)
}

// inspect reads the environment of exe below the root.
func (g *gatherer) inspect(exe string) (Python, bool) {
	if g.root.IsDir(exe) {
		exe = path.Join(exe, "bin/python")
	}
	st, err := g.root.Stat(exe)
	if err != nil || !st.Mode().IsRegular() {
		return Python{}, false
	}
	host, err := g.root.Host(exe)
	if err != nil {
		return Python{}, false
	}
	// The link in a venv must stay a link: pyvenv.cfg is beside its folder.
	if dir, err := g.root.Host(path.Dir(exe)); err == nil && hostExists(filepath.Join(filepath.Dir(dir), "pyvenv.cfg")) {
		host = filepath.Join(dir, path.Base(exe))
	}
	py, ok := python.Inspect(host)
	py.Exe = filepath.Join(g.root.Dir(), exe) // as it was named, before links
	return Python{Python: py}, ok
}

// describe adds what only doctor asks for, and turns paths into the root's.
func (g *gatherer) describe(p *Python) {
	p.Dists, p.Twice = distributions(p.Paths)
	if p.HasTorch() {
		g.torch(p)
	}
	g.base(p)
	p.PipPath, p.PipOf = g.pipOnPath()
	p.UV = g.look("uv") != ""
	p.Exe, p.Prefix, p.Purelib, p.Torch.Dir = g.show(p.Exe), g.show(p.Prefix), g.show(p.Purelib), g.show(p.Torch.Dir)
	for i := range p.Paths {
		p.Paths[i] = g.show(p.Paths[i])
	}
	for k, d := range p.Dists {
		d.Dir = g.show(d.Dir)
		p.Dists[k] = d
	}
}

// distributions are those that an import would find: the first on the path
// wins. Two versions of one in the same folder are half an installation.
func distributions(paths []string) (map[string]Dist, []string) {
	out := map[string]Dist{}
	var twice []string
	for _, dir := range paths {
		for _, d := range python.Dists(dir) {
			have, ok := out[d.Name]
			if !ok {
				out[d.Name] = Dist{Version: d.Version, Dir: dir}
				continue
			}
			if have.Dir == dir && have.Version != d.Version {
				twice = append(twice, fmt.Sprintf("%s %s and %s in %s", d.Name, have.Version, d.Version, dir))
			}
		}
	}
	slices.Sort(twice)
	return out, slices.Compact(twice)
}

var (
	torchCUDA    = regexp.MustCompile(`(?m)^cuda\b[^=\n]*=\s*['"]([^'"]+)['"]`)
	torchVersion = regexp.MustCompile(`(?m)^__version__\b[^=\n]*=\s*['"]([^'"]+)['"]`)
	wheelTag     = regexp.MustCompile(`(?m)^Tag:\s*[^-\s]+-[^-\s]+-(\S+)\s*$`)
)

// torch reads torch/version.py as text: the same values as torch.version.cuda
// and torch.__version__, without the second that an import takes.
func (g *gatherer) torch(p *Python) {
	if b, err := os.ReadFile(filepath.Join(p.TorchDir(), "version.py")); err == nil {
		if m := torchCUDA.FindSubmatch(b); m != nil {
			p.CUDA = string(m[1])
		}
		if m := torchVersion.FindSubmatch(b); m != nil {
			p.FileTorch = string(m[1])
		}
	}
	if b, err := os.ReadFile(filepath.Join(p.Torch.Dir, "torch-"+p.Torch.Version+".dist-info", "WHEEL")); err == nil {
		if m := wheelTag.FindSubmatch(b); m != nil {
			p.Tag = string(m[1])
		}
	}
}

// base looks at the interpreter that a venv was made from: headers and
// ensurepip belong to it.
func (g *gatherer) base(p *Python) {
	prefix := p.Prefix
	if p.Venv {
		b, err := os.ReadFile(filepath.Join(p.Prefix, "pyvenv.cfg"))
		if err != nil {
			return
		}
		for k, v := range assignments(b) {
			if strings.EqualFold(strings.TrimSpace(k), "home") {
				home, err := g.root.Host(strings.TrimSpace(v))
				if err != nil {
					return
				}
				prefix = filepath.Dir(home)
			}
		}
	}
	minor := p.Minor()
	if minor == "" {
		return
	}
	p.IncludeAt = filepath.Join(prefix, "include", "python"+minor, "Python.h")
	for _, name := range []string{minor, minor + "t", minor + "m"} {
		h := filepath.Join(prefix, "include", "python"+name, "Python.h")
		if hostExists(h) {
			p.IncludeAt, p.HasH = h, true
			break
		}
	}
	p.IncludeAt = g.show(p.IncludeAt)
	lib := filepath.Join(prefix, "lib", "python"+minor)
	bundled, _ := filepath.Glob(filepath.Join(lib, "ensurepip", "_bundled", "pip-*.whl"))
	shared, _ := filepath.Glob(filepath.Join(prefix, "share", "python-wheels", "pip-*.whl"))
	p.Ensurepip = len(bundled) > 0 || (len(shared) > 0 && hostExists(filepath.Join(lib, "ensurepip", "__init__.py")))
	if m := filepath.Join(lib, "EXTERNALLY-MANAGED"); !p.Venv && hostExists(m) {
		p.Managed = g.show(m)
	}
}

// pipOnPath is pip as a shell would find it and the interpreter in its first
// line; launchers written in shell (pyenv) tell nothing.
func (g *gatherer) pipOnPath() (pip, interpreter string) {
	for _, name := range []string{"pip", "pip3"} {
		p := g.look(name)
		if p == "" {
			continue
		}
		b, err := g.root.ReadFile(p)
		if err != nil {
			return p, ""
		}
		line, _, _ := strings.Cut(string(b), "\n")
		exe, ok := strings.CutPrefix(strings.TrimSpace(line), "#!")
		if !ok || !strings.Contains(path.Base(strings.TrimSpace(exe)), "python") {
			return p, ""
		}
		return p, strings.Fields(exe)[0]
	}
	return "", ""
}
