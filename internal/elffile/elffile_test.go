package elffile

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// compile makes a shared library from C source with the compiler of this host.
func compile(t testing.TB, dir, name, src string, args ...string) string {
	t.Helper()
	cc, err := exec.LookPath("cc")
	if err != nil {
		if os.Getenv("INVAR_CI") == "1" {
			t.Fatal("no C compiler (cc) on PATH")
		}
		t.Skip("no C compiler (cc) on PATH")
	}
	out := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(out), 0o755); err != nil {
		t.Fatal(err)
	}
	in := out + ".c"
	if err := os.WriteFile(in, []byte(src), 0o644); err != nil {
		t.Fatal(err)
	}
	args = append([]string{"-shared", "-fPIC", "-o", out, in}, args...)
	if text, err := exec.CommandContext(t.Context(), cc, args...).CombinedOutput(); err != nil {
		t.Fatalf("cc %v: %v\n%s", args, err, text)
	}
	return out
}

func TestReadAgreesWithReadelf(t *testing.T) {
	t.Parallel()
	readelf, err := exec.LookPath("readelf")
	if err != nil {
		t.Skip("no readelf on PATH")
	}
	dir := t.TempDir()
	path := compile(t, dir, "libme.so", `
#include <math.h>
#include <stdlib.h>
extern int other(void);
__attribute__((visibility("hidden"))) int secret(void) { return 1; }
int shown(double x) { return other() + secret() + (int)pow(x, 2.5) + rand(); }
__attribute__((weak)) int maybe(void) { return 2; }
`, "-lm", "-Wl,-soname,libme.so.1", "-Wl,-rpath,$ORIGIN/../lib:/opt/x", "-Wl,--enable-new-dtags", "-Wl,--unresolved-symbols=ignore-all")
	f, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	if f.Soname != "libme.so.1" || f.Kind != "shared" || !slices.Equal(f.Runpath, []string{"$ORIGIN/../lib", "/opt/x"}) || len(f.Rpath) != 0 {
		t.Errorf("got %+v", f)
	}
	if !f.Exported("shown") || !f.Exported("maybe") || f.Exported("secret") || f.Exported("other") {
		t.Errorf("exports %v", f.Exports)
	}
	if !slices.ContainsFunc(f.Imports, func(s Symbol) bool { return s.Name == "other" && s.Version == "" }) ||
		!slices.ContainsFunc(f.Imports, func(s Symbol) bool { return s.Name == "pow" && s.Library == "libm.so.6" }) {
		t.Errorf("imports %v", f.Imports)
	}
	out, err := exec.CommandContext(t.Context(), readelf, "-dV", "--wide", path).Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range f.Needed {
		if !strings.Contains(string(out), "Shared library: ["+n+"]") {
			t.Errorf("readelf does not know %s", n)
		}
	}
	if got, want := len(f.Needed), strings.Count(string(out), "(NEEDED)"); got != want {
		t.Errorf("%d needed libraries, readelf finds %d", got, want)
	}
	_, needs, _ := strings.Cut(string(out), "Version needs section")
	if got, want := len(f.Wants), strings.Count(needs, "Name: "); got != want || got == 0 {
		t.Errorf("%d needed versions %v, readelf finds %d", got, f.Wants, want)
	}
}

func TestReadRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	good := compile(t, dir, "a.so", "int a(void) { return 1; }")
	whole, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{"empty": {}, "text": []byte("#!/bin/sh\n"), "three bytes": []byte("\x7fEL")} {
		p := filepath.Join(dir, "x")
		if err := os.WriteFile(p, b, 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := Read(p); !errors.Is(err, ErrNotELF) {
			t.Errorf("%s: got %v, want ErrNotELF", name, err)
		}
	}
	if _, err := ReadFrom(strings.NewReader(string(whole[:len(whole)/2]))); err == nil {
		t.Error("half a library was read without an error")
	}
}

func FuzzReadFrom(f *testing.F) {
	dir := f.TempDir()
	b, err := os.ReadFile(compile(f, dir, "a.so", "#include <stdlib.h>\nint a(void) { return rand(); }", "-Wl,-rpath,$ORIGIN"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add(b[:100])
	f.Fuzz(func(_ *testing.T, b []byte) {
		if e, err := ReadFrom(strings.NewReader(string(b))); err == nil {
			e.Exported("a") // must not panic either
			e.Musl()
		}
	})
}
