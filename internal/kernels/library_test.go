package kernels

import (
	"bytes"
	"debug/elf"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestLibraryDoesNotKnowItsFolder: two builds from copies of the sources at
// different places are the same file.
func TestLibraryDoesNotKnowItsFolder(t *testing.T) {
	t.Parallel()
	host.need(t)
	var files [][]byte
	for _, name := range []string{"a", "another/and longer"} {
		dir := filepath.Join(t.TempDir(), name)
		if err := os.CopyFS(filepath.Join(dir, "src"), os.DirFS(kernelsDir)); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(host.library(t, dir, filepath.Join(dir, "src")))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, b)
	}
	if !bytes.Equal(files[0], files[1]) {
		t.Errorf("two builds differ: %d and %d bytes", len(files[0]), len(files[1]))
	}
}

// TestLibraryShape: what it needs, what it shows, how it is protected.
func TestLibraryShape(t *testing.T) {
	t.Parallel()
	b := hostBuilt.get(t, host)
	f, err := elf.Open(filepath.Join(b.dir, stage1(t).Library))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	needed, err := f.ImportedLibraries()
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range needed {
		if n != "libc.so.6" && n != "libm.so.6" {
			t.Errorf("library needs %s, want the C library only", n)
		}
	}
	if name, err := f.DynString(elf.DT_SONAME); err != nil || !slices.Equal(name, []string{"libinvar_cpu.so"}) {
		t.Errorf("soname %q, %v", name, err)
	}
	if p, err := f.DynString(elf.DT_RUNPATH); err != nil || len(p) > 0 {
		t.Errorf("runpath %q, %v; want none", p, err)
	}
	if now, err := f.DynValue(elf.DT_FLAGS_1); err != nil || len(now) == 0 || now[0]&1 == 0 {
		t.Errorf("flags_1 %v, %v; want NOW", now, err)
	}
	if !slices.ContainsFunc(f.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_GNU_RELRO }) {
		t.Error("no RELRO segment")
	}
	if f.Section(".note.gnu.build-id") == nil {
		t.Error("no build id")
	}
	compareSymbols(t, f)
}

// compareSymbols: the library shows what the header declares, no more, no less.
func compareSymbols(t *testing.T, f *elf.File) {
	t.Helper()
	header, err := os.ReadFile(filepath.Join(kernelsDir, "invar_cpu.h"))
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, m := range regexp.MustCompile(`(?m)^INVAR_CPU_API [^(]*?(\w+)\(`).FindAllSubmatch(header, -1) {
		want = append(want, string(m[1]))
	}
	symbols, err := f.DynamicSymbols()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range symbols {
		if s.Section != elf.SHN_UNDEF {
			got = append(got, s.Name)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if len(want) < 20 || !slices.Equal(got, want) {
		t.Errorf("library shows\n%s\nthe header declares\n%s", strings.Join(got, " "), strings.Join(want, " "))
	}
}

// TestSourcesNameNoLibm: a call of the C library's exp or log would let it
// decide bits.
func TestSourcesNameNoLibm(t *testing.T) {
	t.Parallel()
	b := hostBuilt.get(t, host)
	f, err := elf.Open(filepath.Join(b.dir, stage1(t).Library))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	symbols, err := f.ImportedSymbols()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range symbols {
		if !slices.Contains([]string{"getenv", "__getauxval", "memcpy", "memmove", "memset", "strcmp", "__cxa_finalize"}, s.Name) {
			t.Errorf("library calls %s, which is not on the list of what it may call", s.Name)
		}
	}
}
