package build

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/invar-ops/invar/internal/plan"
	"github.com/invar-ops/invar/internal/testkit"
)

// mortal is a toolkit with the real nvcc whose cicc is killed by SIGKILL the
// first time that it is started, and works from then on.
func mortal(t *testing.T) (nvcc string) {
	t.Helper()
	from, home := testkit.NeedToolkit(t), filepath.Join(t.TempDir(), "cuda")
	if err := testkit.LinkTree(from, home, "bin/nvcc", "nvvm/bin/cicc"); err != nil {
		t.Fatal(err)
	}
	// nvcc finds the rest of its toolkit from where it lies itself, behind links.
	nvcc = filepath.Join(home, "bin", "nvcc")
	program, err := os.ReadFile(filepath.Join(from, "bin", "nvcc"))
	if err == nil {
		err = os.WriteFile(nvcc, program, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	cicc := fmt.Sprintf("#!/bin/sh\nif mkdir %q 2>/dev/null; then kill -9 $$; fi\nexec %q \"$@\"\n",
		filepath.Join(t.TempDir(), "killed"), filepath.Join(from, "nvvm", "bin", "cicc"))
	if err := os.WriteFile(filepath.Join(home, "nvvm", "bin", "cicc"), []byte(cicc), 0o755); err != nil {
		t.Fatal(err)
	}
	return nvcc
}

// TestKilledCicc: what the real nvcc says of a compiler that was killed under
// it is understood, the compile runs again with fewer beside it, and what comes
// out is machine code.
func TestKilledCicc(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("short: runs nvcc")
	}
	nvcc, source := mortal(t), filepath.Join(t.TempDir(), "k.cu")
	if err := os.WriteFile(source, []byte("extern \"C\" __global__ void k(float *x) { *x = 1; }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	compile := plan.Step{
		ID: "stage1/cuda/k/sm_90", Stage: plan.Stage1, Kind: plan.Run, Outputs: []string{"o/k.cubin"},
		Argv:        []string{nvcc, "--cubin", "-arch=sm_90", source, "-o", "o/k.cubin"},
		Fingerprint: fingerprint("killed cicc"),
	}
	var w watch
	b := builder(t, t.TempDir(), &w, 4, compile)
	var notes []string
	b.note = func(s string) { notes = append(notes, s) }
	made := makeIt(t, b, compile.ID)
	if len(w.ran) != 2 || len(notes) != 1 || !strings.Contains(notes[0], "cuda/k/sm_90 was killed") || !strings.Contains(notes[0], "2 at a time") {
		t.Errorf("ran %q, notes %q; want one more run with 2 at a time", w.ran, notes)
	}
	if code := text(t, made.Path); !strings.HasPrefix(code, "\x7fELF") {
		t.Errorf("%s is no machine code", made.Path)
	}
}
