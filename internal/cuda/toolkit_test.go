package cuda

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/invar-ops/invar/internal/python"
	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/run"
	"github.com/invar-ops/invar/internal/testkit"
	"github.com/invar-ops/invar/internal/toolchain"
)

var gcc12 = toolchain.Compiler{Path: "/usr/bin/c++", Vendor: "gcc", Version: "12.2.0"}

// broken is a copy of the real toolkit, of links, with parts left out.
func broken(t *testing.T, without ...string) string {
	t.Helper()
	home := filepath.Join(t.TempDir(), "cuda")
	if err := testkit.LinkTree(testkit.NeedToolkit(t), home, without...); err != nil {
		t.Fatal(err)
	}
	return home
}

// answers is the cache of all tests: hashing one compiler takes a while.
var answers string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "invar-cuda-test-")
	if err != nil {
		panic(err)
	}
	answers = filepath.Join(dir, "cache", "nvcc.json")
	if home, err := testkit.Toolkit(); err == nil { // once, before tests run side by side
		if _, err := Inspect(context.Background(), home, "", os.Environ(), run.System{}, answers); err != nil {
			panic(err)
		}
	}
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

func inspect(t *testing.T, home string) Toolkit {
	t.Helper()
	k, err := Inspect(t.Context(), home, "--cuda-home", os.Environ(), run.System{}, answers)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func unmet(t *testing.T, k Toolkit, q Question) string {
	t.Helper()
	all, err := k.Judge(q)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, r := range all {
		if r.OK {
			continue
		}
		if r.Want == "" || r.Got == "" || r.Hint == "" {
			t.Errorf("%s lacks want, got or hint: %+v", r.Name, r)
		}
		out = append(out, r.Name+": "+r.Got+" -> "+r.Hint)
	}
	return strings.Join(out, "\n")
}

func TestWholeToolkit(t *testing.T) {
	t.Parallel()
	k := inspect(t, testkit.NeedToolkit(t))
	if !strings.HasPrefix(k.Version, "13.2.") || k.Headers != "13.2" || k.GCCMax != 15 || k.ClangMax != 21 || len(k.Missing) > 0 {
		t.Errorf("got %+v", k)
	}
	if !slices.Contains(k.Supported, 90) || !slices.Contains(k.Supported, 120) || slices.Contains(k.Supported, 70) || !strings.HasPrefix(k.Digest, "sha256:") {
		t.Errorf("compiles %v, digest %s", k.Supported, k.Digest)
	}
	q := Question{Torch: "2.15.0", CUDA: "13.2", Compiler: gcc12}
	if text := unmet(t, k, q); text != "" {
		t.Errorf("a whole toolkit is refused: %s", text)
	}
	// Another place with the same content is the same compiler.
	if other := inspect(t, broken(t)); other.Digest != k.Digest {
		t.Errorf("the digest follows the place: %s, %s", other.Digest, k.Digest)
	}
	other := broken(t)
	header := filepath.Join(other, "include", "cuda_runtime.h")
	text, err := os.ReadFile(header)
	if err == nil {
		err = os.Remove(header)
	}
	if err == nil {
		err = os.WriteFile(header, append(text, "// another one\n"...), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	if inspect(t, other).Digest == k.Digest {
		t.Error("the digest does not follow the headers")
	}
}

// TestBrokenToolkits has every mismatch that users have met; all are said
// before anything is compiled, with a command that writes into no Python of theirs.
func TestBrokenToolkits(t *testing.T) {
	t.Parallel()
	torch := Question{Torch: "2.15.0", CUDA: "13.2", Compiler: gcc12}
	for _, tc := range []struct {
		name    string
		without []string
		change  func(t *testing.T, home string, q *Question)
		want    []string
	}{
		{"no cicc", []string{"nvvm/bin/cicc"}, nil, []string{"cicc (nvvm/bin/cicc, of nvidia-nvvm)", "--install-toolkit"}},
		{"no nvvm", []string{"nvvm"}, nil, []string{"cicc", "libdevice"}},
		{"no crt", []string{"include/crt"}, nil, []string{"crt headers", "nvidia-cuda-crt"}},
		{"no runtime", []string{"include/cuda_runtime.h", "lib/libcudart_static.a"}, nil, []string{"runtime headers", "libcudart_static.a"}},
		{"no cccl", []string{"include/cccl", "include/nv"}, nil, []string{"cccl headers", "nvidia-cuda-cccl"}},
		{"no disassembler", []string{"bin/nvdisasm"}, nil, []string{"cuobjdump and nvdisasm", "nvidia-cuda-nvdisasm"}},
		{"ptxas only", []string{"bin/nvcc", "nvvm", "include"}, nil, []string{"has ptxas and no nvcc"}},
		{"no nvcc", []string{"bin"}, nil, []string{"no bin/nvcc"}},
		{"headers of another minor", nil, func(t *testing.T, home string, _ *Question) {
			replace(t, filepath.Join(home, "include", "cuda_runtime_api.h"), "#define CUDART_VERSION  13020", "#define CUDART_VERSION  13050")
		}, []string{"nvcc and its headers", "headers of CUDA 13.5"}},
		{"torch of another major", nil, func(_ *testing.T, _ string, q *Question) { q.CUDA, q.Torch = "12.8", "2.10.0+cu128" }, []string{"nvcc and torch", "torch 2.10.0+cu128 with CUDA 12.8", "ptxas and no nvcc", "cuda-toolkit-12-8"}},
		{"gcc too new", nil, func(_ *testing.T, _ string, q *Question) { q.Compiler.Version = "16.1.0" }, []string{"host compiler of nvcc: gcc 16.1.0", "g++-15"}},
		{"gcc too old", nil, func(_ *testing.T, _ string, q *Question) { q.Compiler.Version = "5.4.0" }, []string{"host compiler of nvcc: gcc 5.4.0"}},
		{"clang too new", nil, func(_ *testing.T, _ string, q *Question) {
			q.Compiler = toolchain.Compiler{Path: "/c", Vendor: "clang", Version: "22.1.0"}
		}, []string{"host compiler of nvcc: clang 22.1.0", "clang++-21"}},
		{"nvcc of another machine", []string{"bin/nvcc"}, func(t *testing.T, home string, _ *Question) {
			write(t, filepath.Join(home, "bin", "nvcc"), "#!/bin/sh\necho 'cannot execute' >&2; exit 126\n", 0o755)
		}, []string{"exit code 126"}},
		{"nvcc without a version", []string{"bin/nvcc"}, func(t *testing.T, home string, _ *Question) {
			write(t, filepath.Join(home, "bin", "nvcc"), "#!/bin/sh\necho hello\n", 0o755)
		}, []string{"no release in the answer"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			home, q := broken(t, tc.without...), torch
			if tc.change != nil {
				tc.change(t, home, &q)
			}
			text := unmet(t, inspect(t, home), q)
			for _, w := range tc.want {
				if !strings.Contains(text, w) {
					t.Errorf("%q is not in %s", w, text)
				}
			}
			if strings.Contains(text, "pip install nvidia") {
				t.Errorf("the repair writes into a Python of the user: %s", text)
			}
		})
	}
}

// replace changes text in a file that is a link: the link goes, the target stays.
func replace(t *testing.T, path, from, to string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(b), from) {
		t.Fatalf("%s does not hold %q", path, from)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	write(t, path, strings.ReplaceAll(string(b), from, to), 0o644)
}

func write(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

// TestFindOrder: what the user named binds, whole or not; of the rest the first
// whole one of torch's major version is taken.
func TestFindOrder(t *testing.T) {
	t.Parallel()
	real := testkit.NeedToolkit(t)
	site := t.TempDir()
	inPython := filepath.Join(site, "nvidia", "cu13")
	if err := testkit.LinkTree(real, inPython); err != nil {
		t.Fatal(err)
	}
	noCicc := broken(t, "nvvm/bin/cicc")
	own := t.TempDir()
	inOwn := filepath.Join(own, "13.2", "lib", "python3.11", "site-packages", "nvidia", "cu13")
	if err := testkit.LinkTree(real, inOwn); err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(t.TempDir(), "site")
	if err := testkit.LinkTree(real, filepath.Join(other, "nvidia", "cuda_nvcc"), "bin/nvcc", "nvvm"); err != nil {
		t.Fatal(err)
	}
	py := func(dir string) python.Python { return python.Python{Paths: []string{dir}} }
	for _, tc := range []struct {
		name       string
		o          Options
		home, from string
	}{
		{"--cuda-home", Options{Home: noCicc, Env: []string{"CUDA_HOME=" + real}, Python: py(site), Torch: "13.2"}, noCicc, "--cuda-home"},
		{"CUDA_HOME", Options{Env: []string{"CUDA_PATH=" + real, "CUDA_HOME=" + noCicc}, Python: py(site), Torch: "13.2"}, noCicc, "CUDA_HOME"},
		{"CUDA_PATH", Options{Env: []string{"CUDA_PATH=" + real, "PATH=" + noCicc + "/bin"}, Torch: "13.2"}, real, "CUDA_PATH"},
		{"PATH", Options{Env: []string{"PATH=" + noCicc + "/bin:" + real + "/bin"}, Torch: "13.2"}, real, "PATH"},
		{"the Python", Options{Python: py(site), Own: own, Torch: "13.2"}, inPython, "the chosen Python"},
		{"own", Options{Python: py(other), Own: own, Torch: "13.2"}, inOwn, "invar's own"},
		{"own only", Options{Env: []string{"CUDA_HOME=" + noCicc}, Own: own, Only: true, Torch: "13.2"}, inOwn, "invar's own"},
		{"torch of another major", Options{Python: py(site), Torch: "12.8"}, inPython, "the chosen Python"}, // as it is, to be refused with its faults
		{"ptxas only", Options{Python: py(other), Torch: "12.8"}, "", ""},
		{"a folder that is not there", Options{Home: "/no/such"}, "/no/such", "--cuda-home"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if _, err := os.Stat("/usr/local/cuda"); err == nil {
				t.Skip("this host has a toolkit in /usr/local, which comes in between")
			}
			o := tc.o
			o.Runner, o.Cache = run.System{}, answers
			k, seen, err := Find(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			// nvcc on PATH is found by its real place.
			got, _ := filepath.EvalSymlinks(k.Home)
			want, _ := filepath.EvalSymlinks(tc.home)
			if tc.from != "PATH" && k.Home != tc.home || tc.from == "PATH" && got != want || k.From != tc.from {
				t.Errorf("got %s (%s), want %s (%s); passed over %v", k.Home, k.From, tc.home, tc.from, seen)
			}
			if tc.name == "ptxas only" && (len(seen) == 0 || !strings.Contains(seen[0].Reason, "ptxas and no nvcc")) {
				t.Errorf("passed over %v, want the folder that is no compiler", seen)
			}
		})
	}
}

// TestSecondLookStartsNothing: the answers of nvcc are kept by identity.
func TestSecondLookStartsNothing(t *testing.T) {
	t.Parallel()
	home, cache := testkit.NeedToolkit(t), filepath.Join(t.TempDir(), "cache", "nvcc.json")
	first, err := Inspect(t.Context(), home, "x", os.Environ(), run.System{}, cache)
	if err != nil || first.Version == "" {
		t.Fatalf("%+v, %v", first, err)
	}
	again, err := Inspect(t.Context(), home, "x", os.Environ(), run.NewReplay(nil), cache)
	if err != nil || again.Fault != "" || again.Version != first.Version || again.Digest != first.Digest {
		t.Errorf("the second look: %+v, %v", again, err)
	}
}

// TestShim: wheels have lib and no lib64, and libcudart.so only under its
// soname. The shim has the usual names, and nothing is written into the toolkit.
func TestShim(t *testing.T) {
	t.Parallel()
	home := broken(t)
	k := inspect(t, home)
	if !strings.Contains(k.NeedsShim(), "no lib64") {
		t.Fatalf("got %q", k.NeedsShim())
	}
	dir := filepath.Join(t.TempDir(), "shim")
	for range 2 { // a second time replaces it
		if err := k.MakeShim(dir); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{"bin/nvcc", "include/cuda_runtime.h", "nvvm/bin/cicc", "lib64/libcudart.so", "lib64/libcudart_static.a", "lib/libcudart_static.a"} {
		if st, err := os.Stat(filepath.Join(dir, want)); err != nil || !st.Mode().IsRegular() {
			t.Errorf("%s: %v", want, err)
		}
	}
	for _, gone := range []string{"lib64", "lib/libcudart.so"} {
		if _, err := os.Lstat(filepath.Join(home, gone)); err == nil {
			t.Errorf("%s was written into the toolkit", gone)
		}
	}
	shim := inspect(t, dir)
	if text := unmet(t, shim, Question{Torch: "2.15.0", CUDA: "13.2", Compiler: gcc12}); text != "" || shim.NeedsShim() != "" {
		t.Errorf("the shim as CUDA_HOME: %q, %s", shim.NeedsShim(), text)
	}
	// torch's own extension builder links with -lcudart from lib64.
	out := filepath.Join(t.TempDir(), "x")
	_, err := (run.System{}).Run(t.Context(), run.Cmd{Argv: []string{"c++", "-shared", "-o", out, "-L" + dir + "/lib64", "-lcudart"}, Env: os.Environ()})
	if err != nil {
		t.Error(err)
	}
}

func TestRecipe(t *testing.T) {
	t.Parallel()
	base := python.Python{Exe: "/usr/bin/python3", Version: "3.11.7"}
	r, err := NewRecipe("/opt/invar", "13.2", base, true)
	if err != nil {
		t.Fatal(err)
	}
	if r.Home() != "/opt/invar/cuda/13.2/lib/python3.11/site-packages/nvidia/cu13" || r.Ready() {
		t.Errorf("got %+v", r)
	}
	text := strings.Join(r.Packages, " ")
	for _, want := range []string{"nvidia-cuda-nvcc==13.2.*", "nvidia-nvvm==13.2.*", "nvidia-cuda-crt==13.2.*", "nvidia-cuda-runtime==13.2.*", "nvidia-cuda-cccl==13.2.*", "nvidia-cuda-cuobjdump==13.2.*", "nvidia-cuda-nvdisasm==13.2.*"} {
		if strings.Count(text, want) != 1 {
			t.Errorf("%s is not once in %s", want, text)
		}
	}
	r.Wheelhouse, r.Offline = "/w", true
	if got := strings.Join(r.Commands()[1], " "); !strings.Contains(got, "--find-links /w --no-index") {
		t.Errorf("got %s", got)
	}
	r.UV = false
	if got := r.Commands(); got[0][2] != "venv" || !strings.Contains(strings.Join(got[1], " "), "pip install") {
		t.Errorf("got %v", got)
	}
	if _, err := NewRecipe("/p", "12.8", base, true); report.ExitCode(err) != report.Unmet || !strings.Contains(err.Error(), "ptxas") {
		t.Errorf("CUDA 12: got %v, want exit code 3", err)
	}
}

// TestMakeFailsClean: what was begun is gone, and the error has the log.
func TestMakeFailsClean(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := Recipe{Base: python.Python{Exe: "/bin/false", Version: "3.11"}, Dir: filepath.Join(dir, "cuda", "13.2"), Minor: "13.2"}
	err := Make(t.Context(), r, run.System{}, os.Environ(), filepath.Join(dir, "log"))
	if report.ExitCode(err) != report.BuildFailed {
		t.Errorf("got %v, want exit code 4", err)
	}
	if _, err := os.Stat(r.Dir); err == nil {
		t.Error("the folder was left behind")
	}
}
