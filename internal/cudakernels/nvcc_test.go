package cudakernels

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/invar-ops/invar/internal/testkit"
)

// toolkit is the CUDA compiler that .ci/setup installs, or a skip.
func toolkit(t *testing.T) string {
	t.Helper()
	found, _ := filepath.Glob(filepath.Join(testkit.Cache(), "cuda-13.2", "lib", "python3*", "site-packages", "nvidia", "cu13"))
	for _, dir := range found {
		if _, err := os.Stat(filepath.Join(dir, "bin", "nvcc")); err == nil {
			return dir
		}
	}
	text := "no environment cuda-13.2 with nvcc in " + testkit.Cache() + "; .ci/setup makes it"
	if os.Getenv("INVAR_CI") == "1" {
		t.Fatal(text)
	}
	t.Skip(text)
	return ""
}

var (
	spill     = regexp.MustCompile(`Compiling entry function '(\w+)'[\s\S]*?(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads[\s\S]*?Used (\d+) registers`)
	function  = regexp.MustCompile(`(?m)^\s*\.section\s+\.text\.(\w+)`)
	forbidden = regexp.MustCompile(`\b(ATOM|ATOMG|ATOMS|RED|REDG|REDUX|UREDGR)\b[.\w]*`)
)

// Arches that are compiled for: the oldest, the one with the most work, the newest.
var arches = []string{"sm_80", "sm_90", "sm_120"}

// TestMachineCode compiles every source with the flags of BUILD.txt and judges
// what the assembler says and what came out.
func TestMachineCode(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("short: runs nvcc")
	}
	home := toolkit(t)
	for _, source := range deviceSources {
		for _, arch := range arches {
			t.Run(source+" "+arch, func(t *testing.T) {
				cubin := filepath.Join(t.TempDir(), source+".cubin")
				said := mustRun(t, filepath.Join(home, "bin", "nvcc"), "--cubin", "-arch="+arch, "-std=c++17", "-O3", "--fmad=false",
					"-Xptxas", "-v", "-Werror", "all-warnings", "-I", filepath.Join(kernelsDir, "include"), "-I", kernelsDir,
					filepath.Join(kernelsDir, source+".cu"), "-o", cubin)
				judgeResources(t, said)
				judgeCode(t, source, mustRun(t, filepath.Join(home, "bin", "nvdisasm"), "-c", cubin))
			})
		}
	}
}

// judgeResources: no kernel keeps registers in memory, and those that live from
// bandwidth leave room for four blocks.
func judgeResources(t *testing.T, said string) {
	t.Helper()
	kernels := spill.FindAllStringSubmatch(said, -1)
	if len(kernels) == 0 {
		t.Fatalf("the assembler names no kernel:\n%s", said)
	}
	for _, k := range kernels {
		var stack, stores, loads, registers int
		if _, err := fmt.Sscan(strings.Join(k[2:], " "), &stack, &stores, &loads, &registers); err != nil {
			t.Fatal(err)
		}
		if max(stack, stores, loads) > 0 {
			t.Errorf("%s: stack %d, spill stores %d, spill loads %d bytes; want none", k[1], stack, stores, loads)
		}
		if strings.HasSuffix(k[1], "_wide") && registers > 64 {
			t.Errorf("%s: %d registers, want at most 64 for four blocks of 256 threads", k[1], registers)
		}
		t.Logf("%s: %d registers", k[1], registers)
	}
}

// judgeCode: no atomic operation or reduction on memory at all, products on
// tensor cores with asynchronous copies.
func judgeCode(t *testing.T, source, code string) {
	t.Helper()
	names := function.FindAllStringSubmatch(code, -1)
	if len(names) == 0 {
		t.Fatal("the machine code holds no function")
	}
	if bad := forbidden.FindString(code); bad != "" {
		t.Errorf("machine code holds %s: its order is not fixed", bad)
	}
	if source != "mm_bf16" && source != "mm_f16" {
		if strings.Contains(code, "HMMA") {
			t.Error("tensor cores where float32 chains are promised")
		}
		return
	}
	for _, part := range function.FindAllStringSubmatchIndex(code, -1) {
		name, body := code[part[2]:part[3]], code[part[1]:]
		if next := function.FindStringIndex(body); next != nil {
			body = body[:next[0]]
		}
		gathers := strings.HasSuffix(name, "_any")
		if !strings.Contains(body, "HMMA.16816.F32") || !gathers && !strings.Contains(body, "LDGSTS") {
			t.Errorf("%s: no HMMA.16816.F32 with float32 sums, or no asynchronous copy", name)
		}
	}
}

// TestForbiddenIsSeen: the pattern knows what the compiler makes of an atomic
// sum.
func TestForbiddenIsSeen(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("short: runs nvcc")
	}
	home, dir := toolkit(t), t.TempDir()
	source, cubin := filepath.Join(dir, "atomic.cu"), filepath.Join(dir, "atomic.cubin")
	text := "extern \"C\" __global__ void k(float *x, float *y) { atomicAdd(x, 1.0f); *y = atomicAdd(x + 1, 2.0f); }\n"
	if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	mustRun(t, filepath.Join(home, "bin", "nvcc"), "--cubin", "-arch=sm_90", source, "-o", cubin)
	if code := mustRun(t, filepath.Join(home, "bin", "nvdisasm"), "-c", cubin); !forbidden.MatchString(code) {
		t.Errorf("no atomic operation found in\n%s", code)
	}
}

// TestClangAsHostCompiler: the C++ compiler that nvcc preprocesses with decides
// no bit of the machine code.
func TestClangAsHostCompiler(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("short: runs nvcc")
	}
	home, made := toolkit(t), map[string]string{}
	for _, compiler := range []string{"g++", "clang++"} {
		cubin := filepath.Join(t.TempDir(), "mm_end.cubin")
		mustRun(t, filepath.Join(home, "bin", "nvcc"), "--cubin", "-arch=sm_90", "-ccbin", compiler, "-std=c++17", "-O3", "--fmad=false",
			"-I", filepath.Join(kernelsDir, "include"), "-I", kernelsDir, filepath.Join(kernelsDir, "mm_end.cu"), "-o", cubin)
		made[compiler] = mustRun(t, filepath.Join(home, "bin", "nvdisasm"), "-c", cubin)
	}
	if made["g++"] != made["clang++"] || made["g++"] == "" {
		t.Error("clang++ as host compiler gives other machine code than g++")
	}
}
