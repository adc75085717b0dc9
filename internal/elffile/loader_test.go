package elffile

import (
	"bytes"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestTreeAgreesWithLdd asks the real loader.
func TestTreeAgreesWithLdd(t *testing.T) {
	t.Parallel()
	ldd, err := exec.LookPath("ldd")
	if err != nil {
		t.Skip("no ldd on PATH")
	}
	dir := t.TempDir()
	compile(t, dir, "deep/libc3.so", "int c(void) { return 3; }")
	compile(t, dir, "lib/libb2.so", "int c(void);\nint b(void) { return c(); }", "-L"+dir+"/deep", "-lc3", "-Wl,-rpath,$ORIGIN/../deep")
	compile(t, dir, "env/libe5.so", "int e(void) { return 5; }")
	for _, tc := range []struct {
		name string
		args []string
		env  string
	}{
		{"runpath", []string{"-Wl,--enable-new-dtags"}, ""},
		{"rpath", []string{"-Wl,--disable-new-dtags"}, ""},
		{"environment", []string{"-Wl,--enable-new-dtags", "-L" + dir + "/env", "-le5"}, dir + "/env"},
		{"not found", []string{"-L" + dir + "/env", "-le5"}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			args := append([]string{"-L" + dir + "/lib", "-lb2", "-lm", "-Wl,-rpath,$ORIGIN/../lib", "-Wl,-rpath-link," + dir + "/deep"}, tc.args...)
			src := "int b(void);\n#include <math.h>\n__attribute__((weak)) int e(void);\nint a(double x) { return b() + (int)exp(x) + (e ? e() : 0); }"
			lib := compile(t, dir, "top-"+strings.ReplaceAll(tc.name, " ", "-")+"/liba.so", src, args...)
			cmd := exec.CommandContext(t.Context(), ldd, lib)
			cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+tc.env)
			out, _ := cmd.CombinedOutput()
			want := map[string]string{}
			for line := range strings.Lines(string(out)) {
				name, path, ok := strings.Cut(strings.TrimSpace(line), " => ")
				if !ok {
					continue
				}
				path, _, _ = strings.Cut(path, " (0x")
				if path == "not found" {
					path = ""
				}
				want[name] = real(path)
			}
			f, err := Read(lib)
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]string{}
			for _, l := range NewLoader("", tc.env).Tree(f) {
				if !strings.HasPrefix(l.Name, "ld-linux") {
					got[l.Name] = real(l.Path)
				}
			}
			if len(got) != len(want) || len(got) < 3 {
				t.Errorf("got %v\nwant %v", got, want)
			}
			for name, path := range want {
				if got[name] != path {
					t.Errorf("%s: got %q, ldd says %q", name, got[name], path)
				}
			}
		})
	}
}

func real(p string) string {
	if r, err := filepath.EvalSymlinks(p); err == nil {
		return r
	}
	return p
}

// TestLoaderRoot resolves inside an unpacked image, where absolute links point
// into the image, and skips a library for another machine.
func TestLoaderRoot(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	compile(t, root, "opt/real/libdep.so.1", "int d(void) { return 1; }", "-Wl,-soname,libdep.so.1")
	for _, d := range []string{"etc/ld.so.conf.d", "lib64", "usr/app"} {
		if err := os.MkdirAll(filepath.Join(root, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/opt/real", filepath.Join(root, "opt/link")); err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("etc/ld.so.conf", "include ld.so.conf.d/*.conf # more\n")
	write("etc/ld.so.conf.d/a.conf", "# comment\n/opt/link\n")
	lib := compile(t, root, "usr/app/liba.so", "int d(void);\nint a(void) { return d(); }", "-L"+root+"/opt/real", "-l:libdep.so.1", "-nostdlib", "-Wl,-rpath,/usr/app/other")
	b, err := os.ReadFile(lib)
	if err != nil {
		t.Fatal(err)
	}
	foreign := bytes.Clone(b)
	binary.LittleEndian.PutUint16(foreign[18:], 0xdead) // e_machine
	write("usr/app/other.tmp", "")
	if err := os.MkdirAll(filepath.Join(root, "usr/app/other"), 0o755); err != nil {
		t.Fatal(err)
	}
	write("usr/app/other/libdep.so.1", string(foreign))
	f, err := Read(lib)
	if err != nil {
		t.Fatal(err)
	}
	links := NewLoader(root, "").Tree(f)
	if len(links) != 1 || links[0].Path != "/opt/link/libdep.so.1" || links[0].Rule != "ld.so.conf" || !strings.Contains(links[0].Reason, "machine-") {
		t.Errorf("got %+v, want libdep.so.1 by ld.so.conf after a file for another machine", links)
	}
	l := NewLoader(root, "")
	l.Loaded["libdep.so.1"] = "/held"
	if links := l.Tree(f); links[0].Rule != "already loaded" {
		t.Errorf("got %+v, want the one that the process holds", links)
	}
}

func FuzzParseCache(f *testing.F) {
	if b, err := os.ReadFile("/etc/ld.so.cache"); err == nil {
		f.Add(b)
	}
	f.Add([]byte("glibc-ld.so.cache1.1"))
	f.Fuzz(func(_ *testing.T, b []byte) { parseCache(b) })
}

func TestCacheOfThisHost(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("/etc/ld.so.cache")
	if err != nil {
		t.Skip("this host has no ld.so.cache")
	}
	ldconfig, err := exec.LookPath("/sbin/ldconfig")
	if err != nil {
		t.Skip("this host has no ldconfig")
	}
	out, err := exec.CommandContext(t.Context(), ldconfig, "-p").Output()
	if err != nil {
		t.Fatal(err)
	}
	if got, want := len(parseCache(b)), strings.Count(string(out), " => "); got != want {
		t.Errorf("%d entries, ldconfig -p prints %d", got, want)
	}
}
