package cudakernels

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// needGPU is the compute capability of the first GPU of this machine, as 90.
// Without one the test is skipped with the reason; under .ci/gpu, which is
// started for nothing else, it fails.
func needGPU(t *testing.T) string {
	t.Helper()
	if _, err := os.Stat("/dev/nvidiactl"); err != nil {
		if os.Getenv("INVAR_GPU") == "1" {
			t.Fatal("no NVIDIA GPU: /dev/nvidiactl is missing")
		}
		t.Skip("no NVIDIA GPU: /dev/nvidiactl is missing; the kernels were not run on one. With one: .ci/gpu")
	}
	capability := mustRun(t, "nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader")
	first, _, _ := strings.Cut(strings.TrimSpace(capability), "\n")
	return strings.ReplaceAll(strings.TrimSpace(first), ".", "")
}

// TestDriverIsCPlusPlusForAGPU, too: what is compiled where a GPU is must not be
// found wrong only there.
func TestDriverIsCPlusPlusForAGPU(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("short: reads CUDA's headers")
	}
	needCompiler(t)
	mustRun(t, "g++", "-std=c++17", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I", filepath.Join(kernelsDir, "include"), "-I", kernelsDir,
		"-isystem", filepath.Join(toolkit(t), "include"), filepath.Join(conformanceDir, "driver.cpp"))
}

// gpuDriver builds the library for the first GPU of this machine and the driver on it.
func gpuDriver(t *testing.T) string {
	t.Helper()
	number := needGPU(t)
	home, dir := toolkit(t), t.TempDir()
	include := []string{"-I", filepath.Join(kernelsDir, "include"), "-I", kernelsDir, "-isystem", filepath.Join(home, "include")}
	link := []string{"g++", "-o", filepath.Join(dir, "driver")}
	for _, name := range deviceSources {
		cubin, fat, object := filepath.Join(dir, name+".cubin"), filepath.Join(dir, name+".fatbin"), filepath.Join(dir, name+".o")
		mustRun(t, filepath.Join(home, "bin", "nvcc"), "--cubin", "-arch=sm_"+number, "-std=c++17", "-O3", "--fmad=false",
			"-I", filepath.Join(kernelsDir, "include"), "-I", kernelsDir, filepath.Join(kernelsDir, name+".cu"), "-o", cubin)
		mustRun(t, filepath.Join(home, "bin", "fatbinary"), "-64", "--create="+fat, "--image3=kind=elf,sm="+number+",file="+cubin)
		mustRun(t, "gcc", "-c", "-DSYMBOL=invar_fatbin_"+name, `-DFATBIN="`+fat+`"`, "../../targets/cuda/embed.S", "-o", object)
		link = append(link, object)
	}
	sources := []string{filepath.Join(conformanceDir, "driver.cpp")}
	for _, name := range append([]string{"launch"}, hostSources...) {
		sources = append(sources, filepath.Join(kernelsDir, "host", name+".cpp"))
	}
	for _, source := range sources {
		object := filepath.Join(dir, filepath.Base(source)+".o")
		argv := append([]string{"g++", "-std=c++17", "-O2", "-DINVAR_CUDA_ARCHES=sm_" + number, "-c", source, "-o", object}, include...)
		mustRun(t, argv...)
		link = append(link, object)
	}
	mustRun(t, append(link, filepath.Join(home, "lib", "libcudart_static.a"), "-ldl", "-lpthread", "-lrt")...)
	return filepath.Join(dir, "driver")
}

// TestGPU: on a GPU the float32 products and all row operators have the bits
// of the reference; products on tensor cores have the same bits in every
// variant, and are close to it.
func TestGPU(t *testing.T) {
	driver := gpuDriver(t)
	m := mode{"0", "early", "chain"}
	for seed := range uint64(3) {
		rowCases(seed, false).compare(t, driver, m)
		exact := new(suite)
		for _, c := range anyhow(seed, false).cases {
			if c.op != opMM || c.operands[inA].dtype == f32 {
				exact.add(c)
			}
		}
		exact.compare(t, driver, m)
	}
	for _, size := range [][3]int{{5, 72, 1100}, {130, 136, 520}, {17, 65, 9000}, {300, 264, 4096}} {
		s := alignedCases(size[0], size[1], size[2])
		first := map[string][]byte{}
		for i, got := range s.results(t, driver, m) {
			c := &s.cases[i]
			key := c.operands[inA].dtype.String()
			if status := binary.LittleEndian.Uint64(got); status != statusOK {
				t.Fatalf("status %d: %s", status, c)
			}
			layout := key + string(rune('0'+c.operands[inB].col%2))
			if first[layout] == nil {
				first[layout] = got
			} else if !bytes.Equal(first[layout], got) {
				t.Errorf("another variant, other bits: %s\n%s", c, c.firstDifference(got, first[layout]))
			}
		}
	}
}
