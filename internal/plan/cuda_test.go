package plan

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/invar-ops/invar/internal/cuda"
	"github.com/invar-ops/invar/internal/proof"
	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/target"
)

func gpuTarget(t *testing.T) target.Target {
	t.Helper()
	x, err := target.Find("cuda")
	if err != nil {
		t.Fatal(err)
	}
	x.Missing = nil
	return x
}

func gpuFacts(t *testing.T, list string) Facts {
	t.Helper()
	f := facts()
	for _, s := range []string{"rows.cu", "norm.cu", "mm_f32.cu", "lanes.cuh", "only.cuh"} {
		f.Sources["cuda/kernels/"+s] = "sha256:" + s
		f.Includes["cuda/kernels/"+s] = nil
	}
	f.Includes["cuda/kernels/rows.cu"] = []string{"lanes.cuh", "cuda_bf16.h"}
	f.Includes["cuda/kernels/norm.cu"] = []string{"lanes.cuh", "only.cuh"}
	parts := map[string]string{}
	for _, p := range []string{"nvcc", "ptxas", "cicc", "cudafe++", "fatbinary", "cuobjdump", "nvdisasm"} {
		parts[p] = "/cu/bin/" + p
	}
	for _, p := range []string{"libdevice", "crt headers", "cccl headers"} {
		parts[p] = "/cu/" + p
	}
	parts["runtime headers"], parts["libcudart_static.a"] = "/cu/include/cuda_runtime.h", "/cu/lib64/libcudart_static.a"
	arches, err := cuda.ParseList(list)
	if err != nil {
		t.Fatal(err)
	}
	f.CUDA = &CUDAFacts{
		Torch: "13.2", Arches: arches, Why: "--arch",
		Toolkit: cuda.Toolkit{
			Home: "/cu", From: "CUDA_HOME", Parts: parts, Version: "13.2.86", Banner: "nvcc 13.2.86", Headers: "13.2",
			Digest: "sha256:1", Supported: []int{80, 86, 89, 90, 100, 120},
		},
	}
	return f
}

// TestOneStepForEachSourceAndArch: its own fingerprint each, of the sources that
// it is made of, the flags and the compiler's content.
func TestOneStepForEachSourceAndArch(t *testing.T) {
	t.Parallel()
	x := gpuTarget(t)
	base, err := Make(x, gpuFacts(t, "8.0,9.0+PTX"), options)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, s := range x.CUDA.Sources {
		for _, a := range []string{"sm_80", "sm_90", "compute_90"} {
			st, ok := base.Step("stage1/cuda/" + s.Name + "/" + a)
			if !ok || seen[st.Fingerprint] || !slices.Contains(st.Argv, "-arch="+a) {
				t.Errorf("%s for %s: %+v", s.Name, a, st)
			}
			seen[st.Fingerprint] = true
		}
		if _, ok := base.Step("stage1/cuda/" + s.Name + "/compute_80"); ok {
			t.Errorf("%s: PTX that nobody asked for", s.Name)
		}
	}
	for _, tc := range []struct {
		name           string
		change         func(*Facts)
		changes, keeps []string
	}{
		{"a header of one source", func(f *Facts) { f.Sources["cuda/kernels/only.cuh"] = "x" }, []string{"norm/sm_80", "norm/sm_90", "norm/fatbin"}, []string{"rows/sm_80", "rows/fatbin", "mm_f32/sm_90"}},
		{"a header of two", func(f *Facts) { f.Sources["cuda/kernels/lanes.cuh"] = "x" }, []string{"norm/sm_80", "rows/sm_90", "proof"}, []string{"mm_f32/sm_90"}},
		{"nvcc", func(f *Facts) { f.CUDA.Toolkit.Digest = "sha256:2" }, []string{"norm/sm_80", "rows/compute_90", "mm_f32/sm_90"}, nil},
		{"the same nvcc, found otherwise", func(f *Facts) { f.CUDA.Toolkit.From = "PATH" }, nil, []string{"norm/sm_80", "rows/fatbin", "link"}},
		{"the same nvcc at another place", func(f *Facts) { move(&f.CUDA.Toolkit, "/elsewhere/cuda", "lib") }, nil, []string{"norm/sm_80", "mm_f32/compute_90", "rows/fatbin", "rows/embed", "proof", "host/mm", "link"}},
		{"one arch more", func(f *Facts) { f.CUDA.Arches = append(f.CUDA.Arches, cuda.Arch{CC: 120}) }, []string{"rows/fatbin", "proof"}, []string{"rows/sm_80", "norm/sm_90"}},
	} {
		f := gpuFacts(t, "8.0,9.0+PTX")
		f.Sources = maps.Clone(f.Sources)
		tc.change(&f)
		p, err := Make(x, f, options)
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range tc.changes {
			a, _ := base.Step("stage1/cuda/" + id)
			if b, ok := p.Step("stage1/cuda/" + id); !ok || a.Fingerprint == b.Fingerprint {
				t.Errorf("%s: %s kept its fingerprint", tc.name, id)
			}
		}
		for _, id := range tc.keeps {
			a, _ := base.Step("stage1/cuda/" + id)
			if b, ok := p.Step("stage1/cuda/" + id); !ok || a.Fingerprint != b.Fingerprint {
				t.Errorf("%s: %s changed", tc.name, id)
			}
		}
	}
}

// move puts the toolkit into another folder, with another name of its lib64.
func move(k *cuda.Toolkit, home, lib string) {
	parts := map[string]string{}
	for name, path := range k.Parts {
		rel := strings.Replace(strings.TrimPrefix(path, k.Home), "/lib64/", "/"+lib+"/", 1)
		parts[name] = home + rel
	}
	k.Home, k.Parts = home, parts
}

// TestSameToolkitElsewhere: nothing is built again when the same toolkit, by its
// content, lies elsewhere; another one at the same place is another one.
func TestSameToolkitElsewhere(t *testing.T) {
	t.Parallel()
	fingerprint := func(change func(*cuda.Toolkit)) string {
		f := gpuFacts(t, "9.0")
		change(&f.CUDA.Toolkit)
		p, err := Make(gpuTarget(t), f, options)
		if err != nil {
			t.Fatal(err)
		}
		return p.Fingerprint
	}
	here := fingerprint(func(*cuda.Toolkit) {})
	if fingerprint(func(k *cuda.Toolkit) { move(k, "/usr/local/cuda-13.2", "lib") }) != here {
		t.Error("the place of the toolkit is in the fingerprint")
	}
	if fingerprint(func(k *cuda.Toolkit) { k.Digest = "sha256:other" }) == here {
		t.Error("the content of the toolkit is not in the fingerprint")
	}
}

// TestCPUPartIsShared: the CPU kernels of cuda are those of cpu, to the fingerprint.
func TestCPUPartIsShared(t *testing.T) {
	t.Parallel()
	a, err := Make(cpu(t), facts(), options)
	if err != nil {
		t.Fatal(err)
	}
	b, err := Make(gpuTarget(t), gpuFacts(t, "9.0"), options)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range a.Steps {
		if s.Kind != Run || s.Stage != Stage1 {
			continue
		}
		if o, ok := b.Step(s.ID); !ok || o.Fingerprint != s.Fingerprint {
			t.Errorf("%s is another one for cuda", s.ID)
		}
	}
	pack, _ := b.Step("stage1/pack")
	spec := pack.Spec.(PackSpec)
	var to []string
	for _, f := range spec.Files {
		to = append(to, f.To)
	}
	if spec.Name != "invar-ops-cuda13.2" || !slices.Contains(to, "lib/libinvar_cpu.so") || !slices.Contains(to, "lib/libinvar_cuda.so") || spec.Proof == "" {
		t.Errorf("the run package is %s of %v, proof %q", spec.Name, to, spec.Proof)
	}
	if b.Includes != "cpu" || b.Flavour != "cuda" {
		t.Errorf("flavour %s includes %q", b.Flavour, b.Includes)
	}
}

func TestOperatorsOfBothTargetsAgree(t *testing.T) {
	t.Parallel()
	names := func(x target.Target) []string {
		var out []string
		for _, o := range slices.Concat(x.Operators, x.Overloads) {
			out = append(out, o.Schema)
		}
		return out
	}
	if a, b := names(cpu(t)), names(gpuTarget(t)); !slices.Equal(a, b) {
		t.Errorf("cpu has %v, cuda %v", a, b)
	}
}

// TestProofCoversEveryImage: what is proved is what is packed.
func TestProofCoversEveryImage(t *testing.T) {
	t.Parallel()
	x := gpuTarget(t)
	p, err := Make(x, gpuFacts(t, "8.0;9.0a+PTX;12.0"), options)
	if err != nil {
		t.Fatal(err)
	}
	st, _ := p.Step("stage1/cuda/proof")
	spec := st.Spec.(proof.Spec)
	if len(spec.Fatbins) != len(x.CUDA.Sources) || strings.Join(spec.Arches, " ") != "8.0 9.0a+PTX 12.0" {
		t.Errorf("got %+v", spec)
	}
	for _, f := range spec.Fatbins {
		var arches []string
		for _, i := range f.Images {
			arches = append(arches, i.Arch)
		}
		if got := strings.Join(arches, " "); got != "sm_80 sm_90a compute_90a sm_120" {
			t.Errorf("%s: %s", f.Source, got)
		}
	}
	link, _ := p.Step("stage1/cuda/link")
	if text := strings.Join(link.Argv, " "); !strings.Contains(text, "-L/cu/lib64 -l:libcudart_static.a") || strings.Contains(text, "-lcuda ") || strings.Contains(text, "-lcudart") {
		t.Errorf("link: %s", text)
	}
	if _, err := json.Marshal(p); err != nil {
		t.Error(err)
	}
}

func TestCUDANeeds(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		change func(*Facts)
		unmet  []string
	}{
		{"good", func(*Facts) {}, nil},
		{"no GPU of the list here", func(f *Facts) { f.CUDA.Devices = []int{80, 90} }, []string{"GPUs of this host"}},
		{"GPUs of the list here", func(f *Facts) { f.CUDA.Devices = []int{90} }, nil},
		{"driver too old", func(f *Facts) { f.CUDA.Devices, f.CUDA.Driver = []int{90}, "550.54.15" }, []string{"NVIDIA driver"}},
		{"driver too old for the toolkit that is to be installed", func(f *Facts) {
			r, err := cuda.NewRecipe("/opt/invar", "13.2", f.Python, true)
			if err != nil {
				t.Fatal(err)
			}
			f.CUDA.Recipe, f.CUDA.Toolkit, f.CUDA.Devices, f.CUDA.Driver = &r, cuda.Toolkit{}, []int{90}, "575.57.08"
		}, []string{"NVIDIA driver"}},
		{"PTX of a newer toolkit than the driver's", func(f *Facts) {
			f.CUDA.Arches = []cuda.Arch{{CC: 90, PTX: true}}
			f.CUDA.Devices, f.CUDA.Driver, f.CUDA.DriverCUDA = []int{120}, "580.65.06", "13.0"
		}, []string{"PTX and the driver"}},
		{"PTX beside machine code for the GPU", func(f *Facts) {
			f.CUDA.Arches = []cuda.Arch{{CC: 90, PTX: true}, {CC: 120}}
			f.CUDA.Devices, f.CUDA.Driver, f.CUDA.DriverCUDA = []int{120}, "580.65.06", "13.0"
		}, nil},
		{"PTX that the driver compiles", func(f *Facts) {
			f.CUDA.Arches = []cuda.Arch{{CC: 90, PTX: true}}
			f.CUDA.Devices, f.CUDA.Driver, f.CUDA.DriverCUDA = []int{120}, "595.10", "13.2"
		}, nil},
		{"driver new enough", func(f *Facts) { f.CUDA.Devices, f.CUDA.Driver = []int{90}, "580.65.06" }, nil},
		{"CPU-only torch", func(f *Facts) { f.CUDA.Torch = "" }, []string{"torch for CUDA"}},
		{"no toolkit", func(f *Facts) { f.CUDA.Toolkit = cuda.Toolkit{} }, []string{"CUDA compiler"}},
		{"no list", func(f *Facts) {
			f.CUDA.Arches, f.CUDA.Problem, f.CUDA.Hint = nil, "none", "name them"
		}, []string{"GPU architectures"}},
		{"all at once", func(f *Facts) {
			f.CUDA.Torch, f.CUDA.Toolkit.Missing, f.CUDA.Arches = "", []string{"cicc"}, []cuda.Arch{{CC: 75}}
		}, []string{"torch for CUDA", "parts of the toolkit", "GPU architecture 7.5"}},
	} {
		f := gpuFacts(t, "9.0")
		tc.change(&f)
		_, err := Make(gpuTarget(t), f, options)
		var got []string
		if u, ok := errors.AsType[*report.UnmetError](err); ok {
			for _, r := range u.Unmet() {
				if r.Want == "" || r.Got == "" || r.Hint == "" {
					t.Errorf("%s: %s lacks want, got or hint: %+v", tc.name, r.Name, r)
				}
				got = append(got, r.Name)
			}
		}
		if !slices.Equal(got, tc.unmet) {
			t.Errorf("%s: unmet %v, want %v (%v)", tc.name, got, tc.unmet, err)
		}
	}
}

// TestInstallToolkitIsPlanned: where it will be is known before it is there.
func TestInstallToolkitIsPlanned(t *testing.T) {
	t.Parallel()
	f := gpuFacts(t, "9.0")
	r, err := cuda.NewRecipe("/opt/invar", "13.2", f.Python, true)
	if err != nil {
		t.Fatal(err)
	}
	f.CUDA.Recipe, f.CUDA.Toolkit = &r, cuda.Toolkit{}
	p, err := Make(gpuTarget(t), f, options)
	if err != nil {
		t.Fatal(err)
	}
	if p.Steps[0].Kind != Toolkit || p.CUDA.Toolkit != r.Home() {
		t.Errorf("first step %+v, toolkit %s", p.Steps[0], p.CUDA.Toolkit)
	}
	st, _ := p.Step("stage1/cuda/rows/sm_90")
	if st.Argv[0] != r.Home()+"/bin/nvcc" {
		t.Errorf("compiles with %s", st.Argv[0])
	}
	var b strings.Builder
	if err := WriteShell(&b, p); err != nil || !strings.Contains(b.String(), "nvidia-cuda-nvcc==13.2.*") || !strings.Contains(b.String(), "package prove --spec prove.json --out build/cuda/proof.json") {
		t.Errorf("script: %v\n%s", err, b.String())
	}
}
