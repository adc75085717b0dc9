package doctor

import (
	"encoding/json"
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/invar-ops/invar/internal/libc"
	"github.com/invar-ops/invar/internal/version"
)

// Where toolkits come from that a package index gave: the chosen Python, and
// the folders that invar itself makes of wheels.
const fromWheels, fromInvar = "wheels", "invar's own"

// cuda lists the toolkits in the order in which torch would take them: the
// variables, nvcc on PATH, /usr/local/cuda; then what else lies there, and
// the parts that wheels bring into site-packages, and invar's own.
func (g *gatherer) cuda(f *Facts) {
	seen := map[string]bool{}
	add := func(home, from string) {
		real, err := g.root.Resolve(home)
		if home == "" || err != nil || seen[real] || !g.root.IsDir(real) {
			return
		}
		seen[real] = true
		if t, ok := g.toolkit(home, from); ok {
			t.Real = real
			f.Toolkits = append(f.Toolkits, t)
		}
	}
	add(g.env["CUDA_HOME"], "CUDA_HOME")
	add(g.env["CUDA_PATH"], "CUDA_PATH")
	if nvcc := f.Tools["nvcc"]; nvcc != "" {
		real, _ := g.root.Resolve(nvcc)
		add(path.Dir(path.Dir(real)), "PATH")
	}
	add("/usr/local/cuda", "/usr/local/cuda")
	for _, p := range g.root.Glob("/usr/local/cuda-*") {
		add(p, "/usr/local")
	}
	for _, dir := range f.Python.Paths {
		for _, p := range g.root.Glob(dir + "/nvidia/cu[0-9]*") {
			add(p, fromWheels)
		}
	}
	for _, p := range g.root.Glob(g.home() + "/cuda/*/lib/python3*/site-packages/nvidia/cu[0-9]*") {
		add(p, fromInvar)
	}
	g.nvidia(f)
}

// toolkit describes home; ok is false for a folder without any part of one.
func (g *gatherer) toolkit(home, from string) (Toolkit, bool) {
	t := Toolkit{Home: home, From: from}
	if p := home + "/bin/nvcc"; g.root.IsFile(p) {
		t.NVCC = p
	}
	t.CICC = g.root.IsFile(home + "/nvvm/bin/cicc")
	for _, inc := range []string{home + "/include", home + "/targets/x86_64-linux/include", home + "/targets/sbsa-linux/include", home + "/targets/aarch64-linux/include"} {
		t.Runtime = t.Runtime || g.root.IsFile(inc+"/cuda_runtime.h")
		if p := inc + "/crt/host_config.h"; g.root.IsFile(p) {
			t.CRT, t.GCCMax = true, g.gccMax(p)
		}
		if t.Version == "" {
			t.Version, t.Source = g.headerVersion(inc + "/cuda.h")
		}
		if t.Version == "" { // cudart's wheel brings this header and not cuda.h
			t.Version, t.Source = g.headerVersion(inc + "/cuda_runtime_api.h")
		}
	}
	for _, lib := range []string{"/lib64", "/lib", "/targets/x86_64-linux/lib", "/targets/sbsa-linux/lib", "/targets/aarch64-linux/lib"} {
		if p := home + lib + "/libcudart.so"; t.Cudart == "" && g.root.IsFile(p) {
			t.Cudart = p
		}
		for _, p := range g.root.Glob(home + lib + "/libcudart.so.[0-9]*") {
			if t.Soname == "" && g.root.IsFile(p) {
				t.Soname = p
			}
		}
	}
	if v, p := g.jsonVersion(home + "/version.json"); v != "" {
		t.Version, t.Source = v, p
	}
	if t.Version == "" {
		t.Version, t.Source = g.textVersion(home)
	}
	return t, t.NVCC != "" || t.Runtime || t.CICC || t.CRT || t.Soname != "" || t.From == "CUDA_HOME"
}

var (
	cudaDefine = regexp.MustCompile(`(?m)^\s*#\s*define\s+(?:CUDA_VERSION|CUDART_VERSION)\s+(\d+)`)
	gccLimit   = regexp.MustCompile(`gcc versions later than (\d+)`)
	cudaText   = regexp.MustCompile(`CUDA Version (\d+\.\d+(?:\.\d+)?)`)
	cudaFolder = regexp.MustCompile(`^cuda-(\d+\.\d+)$`)
)

func (g *gatherer) headerVersion(p string) (v, source string) {
	b, err := g.root.ReadFile(p)
	if err != nil {
		return "", ""
	}
	m := cudaDefine.FindSubmatch(b)
	if m == nil {
		return "", ""
	}
	got, err := version.Parse(version.CUDA, string(m[1]))
	if err != nil {
		return "", ""
	}
	return got.Base(2), p
}

// jsonVersion prefers nvcc's own entry: a toolkit may mix parts.
func (g *gatherer) jsonVersion(p string) (v, source string) {
	b, err := g.root.ReadFile(p)
	if err != nil {
		return "", ""
	}
	var parts map[string]struct {
		Version string `json:"version"`
	}
	if json.Unmarshal(b, &parts) != nil {
		return "", ""
	}
	for _, k := range []string{"cuda_nvcc", "nvcc", "cuda"} {
		if parts[k].Version != "" {
			return parts[k].Version, p
		}
	}
	return "", ""
}

func (g *gatherer) textVersion(home string) (v, source string) {
	if b, err := g.root.ReadFile(home + "/version.txt"); err == nil {
		if m := cudaText.FindSubmatch(b); m != nil {
			return string(m[1]), home + "/version.txt"
		}
	}
	real, _ := g.root.Resolve(home)
	if m := cudaFolder.FindStringSubmatch(path.Base(real)); m != nil {
		return m[1], real
	}
	return "", ""
}

func (g *gatherer) gccMax(p string) int {
	b, err := g.root.ReadFile(p)
	if err != nil {
		return 0
	}
	m := gccLimit.FindSubmatch(b)
	if m == nil {
		return 0
	}
	n, _ := strconv.Atoi(string(m[1]))
	return n
}

var (
	moduleRE  = regexp.MustCompile(`(?m)^NVRM version:.*?\s(\d{3,}\.\d+(?:\.\d+)?)\s`)
	libcudaRE = regexp.MustCompile(`^libcuda\.so\.(\d{3,}\.\d+(?:\.\d+)?)$`)
)

func (g *gatherer) nvidia(f *Facts) {
	if b, err := g.root.ReadFile("/proc/driver/nvidia/version"); err == nil {
		if m := moduleRE.FindSubmatch(b); m != nil {
			f.NVIDIA.Kernel = string(m[1])
		}
	}
	for _, dir := range append([]string{"/usr/lib/wsl/lib", "/usr/lib/wsl/drivers/*"}, libc.Folders...) {
		for _, p := range g.root.Glob(dir + "/libcuda.so*") {
			if strings.HasSuffix(p, "/libcuda.so.1") && g.root.Exists(p) {
				f.NVIDIA.Library = p
			}
			if m := libcudaRE.FindStringSubmatch(path.Base(p)); m != nil {
				f.NVIDIA.User = m[1]
			}
		}
	}
	f.NVIDIA.GPUs = g.root.Glob("/dev/nvidia[0-9]*")
	if len(f.NVIDIA.GPUs) == 0 && g.root.Exists("/dev/dxg") { // WSL has no nodes of its own
		f.NVIDIA.GPUs = []string{"/dev/dxg"}
	}
	f.NVIDIA.Operators = g.operatorsCUDA()
}

// home is the folder of invar below the root.
func (g *gatherer) home() string {
	if p := g.homeOf(); g.root.Live() && g.o.Prefix != "" {
		return p
	}
	return orText(g.o.Prefix, "/opt/invar")
}

var cudaPackage = regexp.MustCompile(`^invar-ops-cuda(\d+\.\d+)-`)

// operatorsCUDA is the newest CUDA among the operators that are current in some
// Python, by the names of their run packages.
func (g *gatherer) operatorsCUDA() string {
	newest := ""
	for _, p := range g.root.Glob(g.home() + "/env/*/current/receipt.json") {
		b, err := g.root.ReadFile(p)
		if err != nil {
			continue
		}
		var r struct {
			RunPackage struct {
				Name string `json:"name"`
			} `json:"run_package"`
		}
		if json.Unmarshal(b, &r) != nil {
			continue
		}
		m := cudaPackage.FindStringSubmatch(r.RunPackage.Name)
		if m != nil && (newest == "" || version.Within(version.CUDA, "< "+m[1], newest)) {
			newest = m[1]
		}
	}
	return newest
}
