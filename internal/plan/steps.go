package plan

import (
	"path"
	"slices"
	"strings"

	"github.com/invar-ops/invar/internal/cuda"
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
	Proof        string   `json:"proof,omitempty"` // file with what is proved of GPU code
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
	if p.CUDA != nil && p.CUDA.Recipe != nil {
		out = append(out, b.toolkit())
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
	out = append(out, link)
	if b.t.CUDA != nil {
		out = append(out, b.gpu()...)
	}
	return append(out, b.pack(lib))
}

func (b builder) pack(lib string) Step {
	spec := PackSpec{
		Name: b.expand([]string{b.t.Stage1.Package})[0], Version: b.o.Version, Platform: "linux." + b.f.Arch, Target: b.t.Name,
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
	needs := []string{"stage1/link"}
	if c := b.t.CUDA; c != nil {
		needs = append(needs, "stage1/cuda/link", "stage1/cuda/proof")
		spec.Proof = ProofFile
		spec.Files = append(spec.Files, File{path.Join("stage1", c.Library), "lib/" + c.Library})
		for _, h := range c.Headers {
			name := path.Join(c.From, h)
			spec.Files = append(spec.Files, File{"src/" + name, "include/" + path.Base(h)})
			inputs = append(inputs, Input{"src/" + name, b.f.Sources[name]})
		}
		spec.SourceDigest = digestOf(append(b.sources(b.t.Stage1.From), b.sources(c.From)...))
	}
	return Step{
		ID: "stage1/pack", Stage: Stage1, Title: "packed", Kind: Pack, Needs: needs,
		Spec: spec, Outputs: []string{"dist/" + spec.Name + "-" + spec.Version + "-" + spec.Platform + ".run"},
		Inputs: inputs,
	}
}

func (b builder) stage2() []Step {
	out := b.extension(b.t.Stage2, "stage2")
	libraries := []string{"stage2/" + b.t.Stage2.Library}
	needs := []string{"stage2/link"}
	if c := b.t.CUDA; c != nil && c.Stage2.Library != "" {
		out = append(out, b.extension(c.Stage2, "stage2/cuda")...)
		libraries, needs = append(libraries, "stage2/cuda/"+c.Stage2.Library), append(needs, "stage2/cuda/link")
	}
	return append(out, b.wheel(libraries, needs))
}

// extension compiles and links one library of the wheel; dir begins the names
// of its steps and is its folder.
func (b builder) extension(s target.Stage2, dir string) []Step {
	var out []Step
	var objects []string
	link := Step{ID: dir + "/link", Stage: Stage2, Title: "linked", Kind: Run, Env: processEnv()}
	facts := []Input{{"torch", b.p.Python.Torch.Version}}
	if dir != "stage2" {
		facts = append(facts, b.toolkitInput())
	}
	include := []string{"-Isrc/" + s.From}
	for _, h := range s.Headers {
		include = append(include, "-Isrc/"+h)
	}
	for _, src := range s.Sources {
		name := objectName(src)
		obj := dir + "/" + name + ".o"
		argv := slices.Concat([]string{b.f.Compiler.Path}, b.expand(s.Flags), include,
			[]string{"-c", path.Join("src", s.From, src), "-o", obj})
		out = append(out, Step{
			ID: dir + "/compile/" + name, Stage: Stage2, Title: name, Kind: Run,
			Argv: argv, Env: processEnv(), Outputs: []string{obj},
			Inputs: append(b.compileInputs(argv, s.From, src), facts...),
		})
		objects = append(objects, obj)
		link.Needs = append(link.Needs, dir+"/compile/"+name)
	}
	lib := dir + "/" + s.Library
	link.Argv = slices.Concat([]string{b.f.Compiler.Path, "-shared", "-o", lib}, objects, b.expand(s.Link))
	link.Outputs, link.Inputs = []string{lib}, append([]Input{b.compilerInput()}, facts...)
	return append(out, link)
}

// objectName is csrc/gemm.cpp as gemm, csrc/cuda/gemm.cpp as cuda_gemm: names
// that two folders share stay apart.
func objectName(source string) string {
	_, rest, ok := strings.Cut(strings.TrimSuffix(source, path.Ext(source)), "/")
	if !ok {
		rest = strings.TrimSuffix(source, path.Ext(source))
	}
	return strings.ReplaceAll(rest, "/", "_")
}

func (b builder) wheel(libraries, needs []string) Step {
	s := b.t.Stage2
	spec := WheelSpec{Project: path.Join("src", s.From, "pyproject.toml"), Library: path.Join(s.Package, s.Library)}
	var inputs []Input
	packages := b.packages(s.From)
	for _, in := range b.sources(s.From) {
		rel := strings.TrimPrefix(in.Name, "src/"+s.From+"/")
		if top, _, ok := strings.Cut(rel, "/"); ok && slices.Contains(packages, top) {
			spec.Files = append(spec.Files, File{in.Name, rel})
			inputs = append(inputs, in)
		} else if rel == "pyproject.toml" || rel == "README.md" {
			inputs = append(inputs, in)
		}
	}
	for _, lib := range libraries {
		spec.Files = append(spec.Files, File{lib, path.Join(s.Package, path.Base(lib))})
	}
	return Step{
		ID: "stage2/wheel", Stage: Stage2, Title: "wheel", Kind: Wheel, Needs: needs,
		Spec: spec, Outputs: []string{"dist"}, Inputs: append(inputs, Input{"invar", b.o.Version}),
	}
}

// packages are the Python packages in folder: the operators, and beside them
// what entry points name that must import without the operators.
func (b builder) packages(folder string) []string {
	var out []string
	for _, in := range b.sources(folder) {
		dir, file := path.Split(strings.TrimPrefix(in.Name, "src/"+folder+"/"))
		if file == "__init__.py" && strings.Count(dir, "/") == 1 {
			out = append(out, strings.TrimSuffix(dir, "/"))
		}
	}
	return out
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

// expand puts the folder of torch in the place of {torch}, invar's version in
// that of {version}, and the toolkit's version and folders in those of {cuda...}.
func (b builder) expand(flags []string) []string {
	pairs := []string{"{torch}", b.p.Python.TorchDir(), "{version}", b.o.Version}
	if c := b.p.CUDA; c != nil && b.f.CUDA != nil {
		include, lib := b.folders()
		var sms []string
		for _, i := range images("", b.f.CUDA.Arches) {
			sms = append(sms, i.arch)
		}
		pairs = append(pairs, "{cuda}", cuda.MinorOf(c.Version), "{cuda-include}", include, "{cuda-lib}", lib, "{arches}", strings.Join(sms, ","))
	}
	r := strings.NewReplacer(pairs...)
	out := make([]string, len(flags))
	for i, f := range flags {
		out[i] = r.Replace(f)
	}
	return out
}
