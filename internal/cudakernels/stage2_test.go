package cudakernels

import (
	"maps"
	"path/filepath"
	"slices"
	"testing"

	"github.com/invar-ops/invar/internal/target"
	"github.com/invar-ops/invar/internal/testkit"
)

// TestStage2 runs the sources of lib_ops_cuda.so on emulated kernels with real
// torch tensors of the CPU.
func TestStage2(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("short: compiles against torch's headers")
	}
	host.emulator(t)
	py := testkit.Need(t, testkit.Latest)
	dir := t.TempDir()
	torch := filepath.Join(py.Purelib, "torch")
	stage1 := filepath.Join(dir, "libinvar_cuda.so")
	argv := []string{"g++", "-shared", "-o", stage1}
	for _, name := range slices.Sorted(maps.Keys(host.objects)) {
		if name != "driver" {
			argv = append(argv, host.objects[name])
		}
	}
	mustRun(t, argv...)

	cuda, err := target.Find("cuda")
	if err != nil {
		t.Fatal(err)
	}
	extension := filepath.Join(dir, "lib_ops_cuda.so")
	link := []string{"g++", "-shared", "-o", extension}
	for i, source := range cuda.CUDA.Stage2.Sources {
		object := filepath.Join(dir, string(rune('a'+i))+".o")
		mustRun(t, "g++", "-std=c++20", "-O0", "-fPIC", "-fvisibility=hidden", "-DINVAR_OPS_CUDA", "-DINVAR_OPS_EMULATED",
			"-DTORCH_TARGET_VERSION=0x020a000000000000ULL", "-isystem", filepath.Join(torch, "include"),
			"-I", "../../targets/cpu/kernels", "-I", filepath.Join(kernelsDir, "include"),
			"-c", filepath.Join("../../targets/extension", source), "-o", object)
		link = append(link, object)
	}
	mustRun(t, append(link, "-Wl,-z,defs", "-L"+filepath.Join(torch, "lib"), "-ltorch_cpu", "-ldl")...)
	res, err := start(t, py.Exe, filepath.Join(conformanceDir, "stage2.py"), extension, stage1)
	if err != nil {
		t.Fatalf("%v\n%s%s", err, res.Stdout, res.Stderr)
	}
	t.Logf("%s", res.Stdout)
}
