package fatbin

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/invar-ops/invar/internal/run"
	"github.com/invar-ops/invar/internal/testkit"
)

// four.fatbin is what fatbinary 13.2.86 made of machine code for sm_90, sm_90a
// and sm_120f and of text for compute_90, without compression.
func TestParse(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("testdata/four.fatbin")
	if err != nil {
		t.Fatal(err)
	}
	want := "elf sm_90; ptx compute_90; elf sm_90a; elf sm_120f"
	for _, padding := range []string{"", "\x00\x00\x00\x00\x00\x00\x00\x00"} {
		all, err := Parse(append(append(bytes.Clone(b), padding...), b...))
		if err != nil || len(all) != 2 {
			t.Fatalf("%d fatbins, %v; want two", len(all), err)
		}
		for _, images := range all {
			var got []string
			for _, i := range images {
				got = append(got, i.Kind+" "+i.Arch)
				if i.Compressed || i.Kind == ELF && !bytes.HasPrefix(i.Data, []byte("\x7fELF")) {
					t.Errorf("%s: compressed %t, begins with %q", i.Arch, i.Compressed, i.Data[:4])
				}
			}
			if s := strings.Join(got, "; "); s != want {
				t.Errorf("got %s, want %s", s, want)
			}
		}
	}
}

func TestParseRefusesDamage(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("testdata/four.fatbin")
	if err != nil {
		t.Fatal(err)
	}
	for name, damage := range map[string]func([]byte) []byte{
		"cut":             func(b []byte) []byte { return b[:len(b)-100] },
		"magic":           func(b []byte) []byte { b[0] = 1; return b },
		"size":            func(b []byte) []byte { b[15] = 0xff; return b },
		"image too long":  func(b []byte) []byte { b[16+8+5] = 1; return b },
		"header too long": func(b []byte) []byte { b[16+4+3] = 0xff; return b },
		"unknown kind":    func(b []byte) []byte { b[16] = 77; return b },
		"text behind":     func(b []byte) []byte { return append(b, "hello, this is no fatbin"...) },
	} {
		if _, err := Parse(damage(bytes.Clone(b))); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if all, err := Parse(nil); err != nil || len(all) != 0 {
		t.Errorf("nothing: %v, %v", all, err)
	}
}

// TestAgainstFatbinary makes a fatbin of several architectures with the real
// program, puts it into a library with the real assembler, and wants the same
// digests back.
func TestAgainstFatbinary(t *testing.T) {
	t.Parallel()
	home := testkit.NeedToolkit(t)
	dir := t.TempDir()
	do := func(argv ...string) {
		t.Helper()
		if _, err := (run.System{}).Run(t.Context(), run.Cmd{Argv: argv, Dir: dir, Env: os.Environ()}); err != nil {
			t.Fatal(err)
		}
	}
	source := "extern \"C\" __global__ void k(float *x) { x[threadIdx.x] += 1; }\n"
	if err := os.WriteFile(filepath.Join(dir, "k.cu"), []byte(source), 0o644); err != nil {
		t.Fatal(err)
	}
	argv := []string{home + "/bin/fatbinary", "-64", "--compress=false", "--create=k.fatbin"}
	for _, sm := range []string{"80", "90a", "120"} {
		do(home+"/bin/nvcc", "--cubin", "-arch=sm_"+sm, "k.cu", "-o", "k"+sm)
		argv = append(argv, "--image3=kind=elf,sm="+sm+",file=k"+sm)
	}
	do(argv...)
	embed, err := filepath.Abs("../../targets/cuda/embed.S")
	if err != nil {
		t.Fatal(err)
	}
	do("c++", "-x", "assembler-with-cpp", "-DSYMBOL=k", `-DFATBIN="k.fatbin"`, "-c", embed, "-o", "k.o")
	do("c++", "-shared", "k.o", "-o", "libk.so")
	all, err := InLibrary(filepath.Join(dir, "libk.so"))
	if err != nil || len(all) != 1 || len(all[0]) != 3 {
		t.Fatalf("got %v, %v; want one fatbin of three images", all, err)
	}
	for i, sm := range []string{"80", "90a", "120"} {
		b, err := os.ReadFile(filepath.Join(dir, "k"+sm))
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(b)
		if got := all[0][i]; got.Arch != "sm_"+sm || got.SHA256 != hex.EncodeToString(sum[:]) {
			t.Errorf("image %d is %s %s, want sm_%s %x", i, got.Arch, got.SHA256, sm, sum)
		}
	}
	if _, err := InLibrary("/bin/sh"); err == nil || !strings.Contains(err.Error(), "no section") {
		t.Errorf("a program without GPU code: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	b, err := os.ReadFile("testdata/four.fatbin")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add(b[:80])
	f.Fuzz(func(t *testing.T, b []byte) {
		all, err := Parse(b)
		if err == nil && bytes.ContainsFunc(b, func(r rune) bool { return r != 0 }) && len(all) == 0 {
			t.Error("bytes and no fatbin and no error")
		}
	})
}
