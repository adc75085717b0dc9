package plan

import (
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/invar-ops/invar/internal/cuda"
	"github.com/invar-ops/invar/internal/proof"
	"github.com/invar-ops/invar/internal/target"
)

// CUDAFacts are what planning the GPU part of a target needs.
type CUDAFacts struct {
	Toolkit cuda.Toolkit
	Seen    []cuda.Candidate // places without a usable toolkit
	Torch   string           // torch.version.cuda; empty for a build without CUDA
	Recipe  *cuda.Recipe     // set when the toolkit has to be made first
	Arches  []cuda.Arch
	Why     string // where the list came from
	Problem string // why there is no list
	Hint    string // what to do then
	Devices []int  // compute capabilities of the GPUs of this host
	Driver  string // of this host; empty without one

	DriverCUDA string // newest CUDA that the driver supports; empty when not known
}

// A CUDA says, for people and programs, what the GPU part is built with.
type CUDA struct {
	Toolkit string       `json:"toolkit"` // its home, or where it will be
	Version string       `json:"version,omitempty"`
	From    string       `json:"from,omitempty"` // how it was found
	Shim    string       `json:"shim,omitempty"` // links in the usual layout, where its own is another
	ShimWhy string       `json:"shim_why,omitempty"`
	Arches  []string     `json:"arches"`
	Why     string       `json:"why"`
	Devices []string     `json:"devices,omitempty"`
	Recipe  *cuda.Recipe `json:"recipe,omitempty"`

	Kit  cuda.Toolkit `json:"-"`
	GPUs []int        `json:"-"` // compute capabilities of this host's devices
}

func cudaPlan(f CUDAFacts, prefix string) *CUDA {
	c := &CUDA{Toolkit: f.Toolkit.Home, Version: f.Toolkit.Version, From: f.Toolkit.From, Why: f.Why, Recipe: f.Recipe, Kit: f.Toolkit, GPUs: f.Devices}
	if f.Recipe != nil {
		c.Toolkit, c.Version, c.From = f.Recipe.Home(), f.Recipe.Minor, "to be installed"
	} else if why := f.Toolkit.NeedsShim(); why != "" {
		c.Shim, c.ShimWhy = cuda.ShimDir(prefix, f.Toolkit.Home), why
	}
	for _, a := range f.Arches {
		c.Arches = append(c.Arches, a.String())
	}
	for _, d := range f.Devices {
		c.Devices = append(c.Devices, fmt.Sprintf("sm_%d", d))
	}
	return c
}

// image is one compile: machine code or text of one source.
type image struct {
	step, file string
	arch       string // "sm_90", "compute_90"
	kind       string // "elf", "ptx"
	number     string // as fatbinary takes it
	flags      []string
}

func images(source string, arches []cuda.Arch) []image {
	var out []image
	for _, a := range arches {
		stem := path.Join("build/cuda", source+".")
		out = append(out, image{
			step: "stage1/cuda/" + source + "/" + a.SM(), file: stem + a.SM() + ".cubin", arch: a.SM(), kind: "elf",
			number: a.Number(), flags: []string{"--cubin", "-arch=" + a.SM()},
		})
		if a.PTX {
			out = append(out, image{
				step: "stage1/cuda/" + source + "/" + a.Compute(), file: stem + a.Compute() + ".ptx", arch: a.Compute(), kind: "ptx",
				number: a.Number(), flags: []string{"--ptx", "-arch=" + a.Compute()},
			})
		}
	}
	return out
}

// gpu is the GPU part of stage 1: compiles, fatbins, proof, host library.
func (b builder) gpu() []Step {
	c, g := b.t.CUDA, b.f.CUDA
	root := path.Join("src", c.From)
	var out []Step
	var objects, needs []string
	spec := proof.Spec{
		Cuobjdump: b.tool("cuobjdump"), Nvdisasm: b.tool("nvdisasm"), Toolkit: g.Toolkit.Version, Compiler: g.Toolkit.Digest,
		Contract: c.Contract, Arches: b.p.CUDA.Arches,
	}
	prove := Step{
		ID: "stage1/cuda/proof", Stage: Stage1, Title: "machine code proved", Kind: Prove,
		Inputs: []Input{b.toolkitInput()}, Outputs: []string{ProofFile},
	}
	for _, s := range c.Sources {
		all := images(s.Name, g.Arches)
		out = append(out, b.compileImages(s, all)...)
		fat := b.fatbin(s, all)
		out = append(out, fat, b.embed(s, fat))
		prove.Needs = append(prove.Needs, fat.ID)
		f := proof.Fatbin{Source: s.Name, File: fat.Outputs[0]}
		for _, i := range all {
			prove.Needs = append(prove.Needs, i.step)
			f.Images = append(f.Images, proof.Image{Arch: i.arch, File: i.file})
		}
		spec.Fatbins = append(spec.Fatbins, f)
		objects, needs = append(objects, out[len(out)-1].Outputs[0]), append(needs, out[len(out)-1].ID)
	}
	prove.Spec = spec
	for _, h := range c.Host.Sources {
		name := strings.TrimSuffix(path.Base(h), path.Ext(h))
		obj := "stage1/cuda/" + name + ".o"
		argv := slices.Concat([]string{b.f.Compiler.Path}, b.expand(c.Host.Flags), b.include(root), []string{"-c", path.Join(root, h), "-o", obj})
		out = append(out, Step{
			ID: "stage1/cuda/host/" + name, Stage: Stage1, Title: "host " + name, Kind: Run, Argv: argv, Env: processEnv(),
			Outputs: []string{obj}, Inputs: append(b.compileInputs(argv, c.From, h), b.toolkitInput()),
		})
		objects, needs = append(objects, obj), append(needs, "stage1/cuda/host/"+name)
	}
	lib := path.Join("stage1", c.Library)
	link := Step{ID: "stage1/cuda/link", Stage: Stage1, Title: "linked", Kind: Run, Env: processEnv(), Needs: needs, Outputs: []string{lib}}
	link.Inputs = []Input{b.compilerInput(), b.toolkitInput()}
	link.Argv = slices.Concat([]string{b.f.Compiler.Path, "-shared", "-o", lib}, objects, b.expand(c.Host.Link))
	return append(out, prove, link)
}

// ProofFile is where the proof step writes, in the work folder.
const ProofFile = "build/cuda/proof.json"

func (b builder) include(root string) []string {
	var out []string
	for _, i := range b.t.CUDA.Include {
		out = append(out, "-I"+path.Join(root, i))
	}
	return out
}

// compileImages are the compiles of one source. What one depends on is the
// source with all that it includes, the flags, the compiler by its content, and
// the C++ compiler that nvcc preprocesses with.
func (b builder) compileImages(s target.KernelSource, all []image) []Step {
	c := b.t.CUDA
	root := path.Join("src", c.From)
	var out []Step
	for _, i := range all {
		argv := slices.Concat([]string{b.tool("nvcc")}, i.flags, []string{"-ccbin", b.f.Compiler.Path}, b.expand(c.Flags), s.Flags,
			b.include(root), []string{path.Join(root, s.Source), "-o", i.file})
		out = append(out, Step{
			ID: i.step, Stage: Stage1, Title: "kernels " + i.arch, Kind: Run, Argv: argv, Env: processEnv(),
			Outputs: []string{i.file}, Inputs: append(b.compileInputs(argv, c.From, s.Source), b.toolkitInput()),
		})
	}
	return out
}

func (b builder) fatbin(s target.KernelSource, all []image) Step {
	file := "build/cuda/" + s.Name + ".fatbin"
	// Not compressed: the run package is, and probe looks inside without a toolkit.
	argv := []string{b.tool("fatbinary"), "-64", "--compress=false", "--create=" + file}
	st := Step{
		ID: "stage1/cuda/" + s.Name + "/fatbin", Stage: Stage1, Title: "fatbin " + s.Name, Kind: Run, Env: processEnv(),
		Outputs: []string{file}, Inputs: []Input{b.toolkitInput()},
	}
	for _, i := range all {
		argv = append(argv, fmt.Sprintf("--image3=kind=%s,sm=%s,file=%s", i.kind, i.number, i.file))
		st.Needs = append(st.Needs, i.step)
	}
	st.Argv = argv
	return st
}

func (b builder) embed(s target.KernelSource, fat Step) Step {
	obj := "stage1/cuda/" + s.Name + ".fatbin.o"
	return Step{
		ID: "stage1/cuda/" + s.Name + "/embed", Stage: Stage1, Title: "embedded " + s.Name, Kind: Run, Env: processEnv(), Needs: []string{fat.ID},
		Argv: []string{
			b.f.Compiler.Path, "-x", "assembler-with-cpp", "-DSYMBOL=invar_fatbin_" + s.Name, "-DFATBIN=\"" + fat.Outputs[0] + "\"",
			"-c", path.Join("src", b.t.CUDA.Embed), "-o", obj,
		},
		Outputs: []string{obj},
		Inputs:  []Input{b.compilerInput(), {"src/" + b.t.CUDA.Embed, b.f.Sources[b.t.CUDA.Embed]}},
	}
}

// toolkitInput is the compiler by its content: the same one at another place is the same.
func (b builder) toolkitInput() Input {
	return Input{"nvcc", b.f.CUDA.Toolkit.Version + " " + b.f.CUDA.Toolkit.Digest}
}

// tool is a program of the toolkit; of one that has to be made first, where it will be.
func (b builder) tool(name string) string {
	if r := b.f.CUDA.Recipe; r != nil {
		return filepath.Join(r.Home(), "bin", name)
	}
	return b.f.CUDA.Toolkit.Bin(name)
}

// folders are what {cuda-include} and {cuda-lib} stand for.
func (b builder) folders() (include, lib string) {
	if r := b.f.CUDA.Recipe; r != nil {
		return filepath.Join(r.Home(), "include"), filepath.Join(r.Home(), "lib")
	}
	return b.f.CUDA.Toolkit.Include(), b.f.CUDA.Toolkit.Lib()
}

// places are the words of commands that name the toolkit's place. What is there
// is in toolkitInput.
func (b builder) places() map[string]string {
	if b.f.CUDA == nil || b.t.CUDA == nil {
		return nil
	}
	include, lib := b.folders()
	out := map[string]string{include: "CUDA/include", "-L" + lib: "-LCUDA/lib"}
	for _, name := range []string{"nvcc", "fatbinary"} {
		out[b.tool(name)] = "CUDA/bin/" + name
	}
	delete(out, ".") // a folder that is not known
	delete(out, "")
	return out
}

// withoutPlaces is a specification as far as it decides the result.
func withoutPlaces(spec any) any {
	if s, ok := spec.(proof.Spec); ok {
		s.Cuobjdump, s.Nvdisasm = "", ""
		return s
	}
	return spec
}

// toolkit makes a toolkit of invar's own before anything is compiled.
func (b builder) toolkit() Step {
	r := b.f.CUDA.Recipe
	return Step{
		ID: "toolkit", Stage: StageToolkit, Kind: Toolkit, Title: "making " + r.Dir + " (CUDA " + r.Minor + ")",
		Inputs: []Input{{"packages", strings.Join(r.Packages, " ")}}, Outputs: []string{b.tool("nvcc")},
	}
}
