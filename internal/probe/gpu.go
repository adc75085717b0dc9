package probe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/invar-ops/invar/internal/cuda"
	"github.com/invar-ops/invar/internal/fatbin"
	"github.com/invar-ops/invar/internal/host"
	"github.com/invar-ops/invar/internal/proof"
	"github.com/invar-ops/invar/internal/python"
	"github.com/invar-ops/invar/internal/report"
)

// A gpuState is what the host says about GPUs, asked once.
type gpuState struct {
	devices []int  // compute capabilities that programs can use
	driver  string // of this host; empty without one
	missing string // why there is none
}

// gpus asks for the devices of this host.
func (p *prober) gpus(ctx context.Context) (gpuState, error) {
	if p.gpu != nil {
		return *p.gpu, nil
	}
	facts, err := host.Detect(ctx, host.Options{Root: "/", Runner: p.Runner, Env: p.Env})
	if err != nil {
		return gpuState{}, err
	}
	p.gpu = &gpuState{}
	if p.gpu.devices, p.gpu.driver, _ = cuda.Devices(facts); len(p.gpu.devices) == 0 {
		p.gpu.missing = "no GPU"
		if v := host.Judge(facts); v.Vendor == "nvidia" && len(v.Health.Notes) > 0 {
			p.gpu.missing = "no GPU that programs can use: " + strings.Join(v.Health.Notes, "; ")
		}
	}
	return *p.gpu, nil
}

// device is where levels 6 and 7 put tensors: a target for GPUs is proved on one.
func (p *prober) device() string {
	if p.target.CUDA != nil {
		return "cuda"
	}
	return ""
}

// gpuLibrary is where the receipt put the library with the GPU code.
func (p *prober) gpuLibrary() string {
	return filepath.Join(p.receipt.Ops(), "lib", p.target.CUDA.Library)
}

// gpuWiring is the part of level 4 about the GPU libraries: the one of stage 2
// is in the process where torch has CUDA, and stage 1 is of the same build.
func (p *prober) gpuWiring() []report.Check {
	c, g := p.target.CUDA, p.facts.CUDA
	if c == nil {
		return nil
	}
	if g.Error != "" {
		return []report.Check{check(Wiring, "GPU stage 1", false, p.gpuLibrary(), g.Error)}
	}
	out := []report.Check{
		check(Wiring, "GPU contract", g.Contract == c.Contract, c.Contract+" of the target", g.Contract),
		check(Wiring, "GPU version", strings.Contains(p.receipt.RunPackage.Name, "-"+g.Version+"-"), p.receipt.RunPackage.Name, "version "+g.Version),
	}
	if lib := c.Stage2.Library; lib != "" {
		want := filepath.Join(p.receipt.Site(), c.Stage2.Package, lib)
		out = append(out, p.mapped("GPU stage 2 in use", want), p.mapped("GPU stage 1 in use", p.gpuLibrary()))
	}
	return out
}

// gpuKernels is the part of level 5 about GPU code: what is installed is what
// was proved when it was built, and proved again where a toolkit is here.
func (p *prober) gpuKernels(ctx context.Context) ([]report.Check, error) {
	if p.target.CUDA == nil {
		return nil, nil
	}
	images, err := p.gpuImages()
	if err != nil {
		return []report.Check{check(Kernels, "GPU code", false, "fatbins in "+p.within(p.gpuLibrary()), err.Error())}, nil
	}
	was, reason, err := p.proved(ctx)
	if err != nil {
		return nil, err
	}
	if reason != "" {
		return []report.Check{check(Kernels, "GPU code", false, "the proof in the manifest of "+p.receipt.RunPackage.Name, reason)}, nil
	}
	out := []report.Check{sameCode(was, images), p.saidArches(images)}
	again, err := p.disassemble(ctx, was, images)
	if err != nil {
		return nil, err
	}
	out = append(out, again)
	state, err := p.gpus(ctx)
	if err != nil {
		return nil, err
	}
	out = append(out, p.runsHere(was, state))
	if c, ok := driverServes(was, state); ok {
		out = append(out, c)
	}
	return out, nil
}

// gpuImages is the GPU code in the installed library.
func (p *prober) gpuImages() ([]fatbin.Image, error) {
	host, err := p.Root.Host(p.gpuLibrary())
	if err != nil {
		return nil, err
	}
	libs, err := fatbin.InLibrary(host)
	return slices.Concat(libs...), err
}

// proved reads the proof out of the run package in the store.
func (p *prober) proved(ctx context.Context) (was proof.Proof, reason string, err error) {
	m, c, err := p.storedManifest(ctx)
	if err != nil || m == nil {
		return was, firstNonEmpty(c.Got, c.Reason), err
	}
	raw, ok := m.Extra["cuda"]
	if !ok {
		return was, "the manifest has none", nil
	}
	if err := json.Unmarshal(raw, &was); err != nil {
		return was, err.Error(), nil
	}
	if len(was.Images) == 0 {
		return was, "it names no image", nil
	}
	return was, "", nil
}

// sameCode compares the images by their digests, in order.
func sameCode(was proof.Proof, images []fatbin.Image) report.Check {
	var want, got []string
	arches := map[string]bool{}
	for _, i := range was.Images {
		want = append(want, i.Arch+" "+i.SHA256)
		arches[i.Arch] = true
	}
	for _, i := range images {
		got = append(got, i.Arch+" "+i.SHA256)
	}
	names := strings.Join(was.Arches, ", ")
	c := check(Kernels, "GPU code", slices.Equal(want, got), "the "+count(len(want), "image")+" that were proved at build time, and nothing else",
		fmt.Sprintf("%s for %s", count(len(got), "image"), names))
	if c.Status != report.Pass {
		for i := range want {
			if i >= len(got) || want[i] != got[i] {
				c.Got += "; the first difference: " + firstNonEmpty(at(got, i), "nothing") + ", want " + want[i]
				break
			}
		}
		c.Hint = "invar build cuda --force"
	}
	return c
}

func at(list []string, i int) string {
	if i < len(list) {
		return list[i]
	}
	return ""
}

// saidArches compares what the library says of itself with what is in it.
func (p *prober) saidArches(images []fatbin.Image) report.Check {
	var have []string
	for _, i := range images {
		have = add(have, i.Arch)
	}
	said := strings.FieldsFunc(p.facts.CUDA.Arches, func(r rune) bool { return r == ',' || r == ' ' })
	slices.Sort(have)
	slices.Sort(said)
	return check(Kernels, "GPU architectures", slices.Equal(have, said), strings.Join(have, ", ")+", which its code is for", "the library says "+strings.Join(said, ", "))
}

// disassemble looks into the installed code again.
func (p *prober) disassemble(ctx context.Context, was proof.Proof, images []fatbin.Image) (report.Check, error) {
	const name, want = "GPU machine code", "no floating-point atomics or reductions to memory"
	py := python.Python{Paths: p.receipt.Python.Paths}
	cuobjdump, nvdisasm, ok := cuda.Readers(p.receipt.Prefix, py, p.Env)
	if !ok {
		return skipped(Kernels, name, "no cuobjdump and nvdisasm here; the code is by its digests what was proved at build time"), nil
	}
	tools := proof.Tools{Runner: p.Runner, Env: p.Env, Cuobjdump: cuobjdump, Nvdisasm: nvdisasm}
	kernels := 0
	for n, i := range images {
		source := ""
		if n < len(was.Images) {
			source = was.Images[n].Source
		}
		found, err := tools.Image(ctx, source, i)
		if ctx.Err() != nil {
			return report.Check{}, ctx.Err()
		}
		if pr, ok := errors.AsType[*report.Problem](err); ok {
			c := check(Kernels, name, false, want, fmt.Sprintf("%v: %s", pr.Err, pr.Got))
			c.Hint = pr.Hint
			return c, nil
		}
		if err != nil {
			c := check(Kernels, name, false, want, err.Error())
			c.Status, c.Reason = report.Unclear, err.Error()
			return c, nil
		}
		kernels += len(found.Kernels)
	}
	return check(Kernels, name, true, want, fmt.Sprintf("none in %s of %s, disassembled again", count(kernels, "kernel"), count(len(images), "image"))), nil
}

func (p *prober) runsHere(was proof.Proof, state gpuState) report.Check {
	const name = "GPUs of this host"
	if state.missing != "" {
		return skipped(Kernels, name, state.missing)
	}
	arches, err := cuda.ParseList(strings.Join(was.Arches, ","))
	if err != nil {
		return check(Kernels, name, false, "architectures in the manifest", err.Error())
	}
	missing := cuda.Unserved(arches, state.devices)
	var sms []string
	for _, d := range missing {
		sms = append(sms, fmt.Sprintf("sm_%d", d))
	}
	c := check(Kernels, name, len(missing) == 0, "code that runs on each of them",
		firstNonEmpty(prefixed("none for ", sms), cuda.Join(arches)+" runs on all of them"))
	c.Hint = hintUnless(c, "build again for them: invar build cuda")
	return c
}

// driverServes compares the driver with the CUDA runtime in the library, which
// is that of the toolkit and not that of torch.
func driverServes(was proof.Proof, state gpuState) (report.Check, bool) {
	want, ok, err := cuda.DriverFor(was.Toolkit)
	if err != nil || !ok || state.driver == "" {
		return report.Check{}, false
	}
	c := check(Kernels, "NVIDIA driver", cuda.Serves(want, state.driver), want+", which the runtime of CUDA "+cuda.MinorOf(was.Toolkit)+" in the library needs", state.driver)
	c.Hint = hintUnless(c, "install a newer driver, or build with a toolkit of an older CUDA: invar build cuda --cuda-home DIR")
	return c, true
}
