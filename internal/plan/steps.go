package plan

import (
	"path"
	"slices"
	"strings"

	"github.com/invar-ops/invar/internal/target"
)

// A File goes into a package: From in the work folder, To in the package.
type File struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// A PackSpec is what the run package is written from.
type PackSpec struct {
	Name         string   `json:"name"`
	Version      string   `json:"version"`
	Platform     string   `json:"platform"` // "linux.x86_64"
	Target       string   `json:"target"`
	Contract     string   `json:"contract"`
	Operators    []string `json:"operators"`
	Levels       []string `json:"levels"`
	Compiler     string   `json:"compiler"`
	SourceDigest string   `json:"source_digest"`
	Files        []File   `json:"files"`
}

// A WheelSpec is what the wheel is written from.
type WheelSpec struct {
	Project string `json:"project"` // pyproject.toml in the work folder
	Library string `json:"library"` // file in the package that decides the platform tag
	Files   []File `json:"files"`
}

// A builder makes the steps of one plan.
type builder struct {
	t target.Target
	f Facts
	o Options
	p Plan
}

func steps(t target.Target, f Facts, o Options, p Plan) []Step {
	b := builder{t, f, o, p}
	if f.Release != nil {
		return b.released(*f.Release)
	}
	var out []Step
	if p.Recipe != nil {
		out = append(out, b.environment())
	}
	out = append(out, b.stage1()...)
	out = append(out, Step{
		ID: "install/ops", Stage: Stage1, Title: "installed", Kind: Ops,
		Needs: []string{"stage1/pack"}, Inputs: []Input{b.pythonInput()},
	})
	out = append(out, b.stage2()...)
	return append(out,
		Step{
			ID: "install/site", Stage: Stage2, Title: "installed", Kind: Site,
			Needs: []string{"stage2/wheel", "install/ops"}, Inputs: []Input{b.pythonInput()},
		},
		Step{
			ID: "install/commit", Stage: StageInstall, Title: "switched", Kind: Commit,
			Needs: []string{"install/site"}, Inputs: []Input{b.pythonInput()},
		},
		Step{ID: "probe", Stage: StageProbe, Title: "probed", Kind: ProbeIt, Needs: []string{"install/commit"}},
	)
}

func (b builder) pythonInput() Input { return Input{"python", b.p.Python.Purelib} }

func (b builder) environment() Step {
	return Step{
		ID: "python/environment", Stage: StagePython, Kind: Env,
		Title:   "making " + b.p.Recipe.Dir + " (" + strings.Join(b.p.Recipe.Packages, ", ") + ")",
		Inputs:  []Input{{"interpreter", b.p.Recipe.Base.Exe}, {"packages", strings.Join(b.p.Recipe.Packages, " ")}},
		Outputs: []string{b.p.Python.Exe},
	}
}

// processEnv is all that a compiler sees. CXXFLAGS and CPATH are left out on
// purpose: a stray -ffast-math would break the contract without a word.
func processEnv() []string { return []string{"LC_ALL=C", "SOURCE_DATE_EPOCH=315532800"} }

func (b builder) stage1() []Step {
	var out []Step
	var objects []string
	link := Step{ID: "stage1/link", Stage: Stage1, Title: "linked", Kind: Run, Env: processEnv()}
	root := path.Join("src", b.t.Stage1.From)
	for _, o := range b.t.Stage1.For(b.f.Arch) {
		obj := path.Join("stage1", o.Name+".o")
		argv := slices.Concat([]string{b.f.Compiler.Path}, b.expand(b.t.Stage1.Flags), o.Flags,
			[]string{"-c", path.Join(root, o.Source), "-o", obj})
		out = append(out, Step{
			ID: "stage1/compile/" + o.Name, Stage: Stage1, Title: strings.TrimSpace("kernels " + o.Level), Kind: Run,
			Argv: argv, Env: processEnv(), Outputs: []string{obj},
			Inputs: b.compileInputs(argv, b.t.Stage1.From, o.Source),
		})
		objects = append(objects, obj)
		link.Needs = append(link.Needs, "stage1/compile/"+o.Name)
	}
	lib := path.Join("stage1", b.t.Stage1.Library)
	link.Argv = slices.Concat([]string{b.f.Compiler.Path, "-shared", "-o", lib}, objects, b.expand(b.t.Stage1.Link))
	link.Outputs, link.Inputs = []string{lib}, []Input{b.compilerInput()}
	return append(out, link, b.pack(lib))
}

func (b builder) pack(lib string) Step {
	spec := PackSpec{
		Name: b.t.Stage1.Package, Version: b.o.Version, Platform: "linux." + b.f.Arch, Target: b.t.Name,
		Contract: b.t.Contract, Levels: b.t.Stage1.Levels(b.f.Arch),
		Compiler: b.f.Compiler.Banner, SourceDigest: digestOf(b.sources(b.t.Stage1.From)),
		Files: []File{{From: lib, To: "lib/" + b.t.Stage1.Library}},
	}
	inputs := []Input{{"invar", b.o.Version}}
	for _, h := range b.t.Stage1.Headers {
		name := path.Join(b.t.Stage1.From, h)
		spec.Files = append(spec.Files, File{"src/" + name, "include/" + path.Base(h)})
		inputs = append(inputs, Input{"src/" + name, b.f.Sources[name]})
	}
	for _, o := range b.t.Operators {
		spec.Operators = append(spec.Operators, o.Name)
	}
	return Step{
		ID: "stage1/pack", Stage: Stage1, Title: "packed", Kind: Pack, Needs: []string{"stage1/link"},
		Spec: spec, Outputs: []string{"dist/" + spec.Name + "-" + spec.Version + "-" + spec.Platform + ".run"},
		Inputs: inputs,
	}
}

func (b builder) stage2() []Step {
	s := b.t.Stage2
	var out []Step
	var objects []string
	link := Step{ID: "stage2/link", Stage: Stage2, Title: "linked", Kind: Run, Env: processEnv()}
	torch := Input{"torch", b.p.Python.Torch.Version}
	include := []string{"-Isrc/" + s.From}
	for _, h := range s.Headers {
		include = append(include, "-Isrc/"+h)
	}
	for _, src := range s.Sources {
		name := strings.TrimSuffix(path.Base(src), path.Ext(src))
		obj := "stage2/" + name + ".o"
		argv := slices.Concat([]string{b.f.Compiler.Path}, b.expand(s.Flags), include,
			[]string{"-c", path.Join("src", s.From, src), "-o", obj})
		out = append(out, Step{
			ID: "stage2/compile/" + name, Stage: Stage2, Title: name, Kind: Run,
			Argv: argv, Env: processEnv(), Outputs: []string{obj},
			Inputs: append(b.compileInputs(argv, s.From, src), torch),
		})
		objects = append(objects, obj)
		link.Needs = append(link.Needs, "stage2/compile/"+name)
	}
	lib := "stage2/" + s.Library
	link.Argv = slices.Concat([]string{b.f.Compiler.Path, "-shared", "-o", lib}, objects, b.expand(s.Link))
	link.Outputs, link.Inputs = []string{lib}, []Input{b.compilerInput(), torch}
	return append(out, link, b.wheel(lib))
}

func (b builder) wheel(lib string) Step {
	s := b.t.Stage2
	spec := WheelSpec{Project: path.Join("src", s.From, "pyproject.toml"), Library: path.Join(s.Package, s.Library)}
	var inputs []Input
	for _, in := range b.sources(s.From) {
		rel := strings.TrimPrefix(in.Name, "src/"+s.From+"/")
		if strings.HasPrefix(rel, s.Package+"/") {
			spec.Files = append(spec.Files, File{in.Name, rel})
			inputs = append(inputs, in)
		} else if rel == "pyproject.toml" || rel == "README.md" {
			inputs = append(inputs, in)
		}
	}
	spec.Files = append(spec.Files, File{lib, spec.Library})
	return Step{
		ID: "stage2/wheel", Stage: Stage2, Title: "wheel", Kind: Wheel, Needs: []string{"stage2/link"},
		Spec: spec, Outputs: []string{"dist"}, Inputs: append(inputs, Input{"invar", b.o.Version}),
	}
}

func (b builder) sources(folder string) []Input {
	var out []Input
	for name, digest := range b.f.Sources {
		if strings.HasPrefix(name, folder+"/") {
			out = append(out, Input{"src/" + name, digest})
		}
	}
	slices.SortFunc(out, func(x, y Input) int { return strings.Compare(x.Name, y.Name) })
	return out
}

// expand puts the folder of torch in the place of {torch}, and invar's version in that of {version}.
func (b builder) expand(flags []string) []string {
	r := strings.NewReplacer("{torch}", b.p.Python.TorchDir(), "{version}", b.o.Version)
	out := make([]string, len(flags))
	for i, f := range flags {
		out[i] = r.Replace(f)
	}
	return out
}
