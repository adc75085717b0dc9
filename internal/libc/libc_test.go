package libc

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/invar-ops/invar/internal/rootfs"
)

const glibcSays = "\x00GNU C Library (Debian GLIBC 2.36-9+deb12u10) stable release version 2.36.\n\x00"

func TestFind(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		files map[string]string
		want  Library
		arch  string
	}{
		{"Debian", map[string]string{
			"lib/x86_64-linux-gnu/libc.so.6": glibcSays, "lib64/ld-linux-x86-64.so.2": "",
		}, Library{"glibc", "2.36", "/lib/x86_64-linux-gnu/libc.so.6"}, "x86_64"},
		{"Debian with its package musl", map[string]string{
			"lib/x86_64-linux-gnu/libc.so.6": glibcSays, "lib/ld-musl-x86_64.so.1": "", "lib64/ld-linux-x86-64.so.2": "",
		}, Library{"glibc", "2.36", "/lib/x86_64-linux-gnu/libc.so.6"}, "x86_64"},
		{"openEuler for aarch64", map[string]string{
			"usr/lib64/libc.so.6": "GNU C Library (GNU libc) stable release version 2.38.\n", "lib/ld-linux-aarch64.so.1": "",
		}, Library{"glibc", "2.38", "/usr/lib64/libc.so.6"}, "aarch64"},
		{"Alpine", map[string]string{
			"lib/ld-musl-aarch64.so.1": "", "lib/apk/db/installed": "P:busybox\nV:1.36\n\nP:musl\nV:1.2.5-r10\nA:aarch64\n",
		}, Library{"musl", "1.2.5", "/lib/ld-musl-aarch64.so.1"}, "aarch64"},
		{"musl without a package database", map[string]string{"lib/ld-musl-x86_64.so.1": ""}, Library{"musl", "", "/lib/ld-musl-x86_64.so.1"}, "x86_64"},
		{"a file of that name that is something else", map[string]string{"lib64/libc.so.6": "GNU C Library without a number"}, Library{}, ""},
		{"nothing", map[string]string{"etc/hostname": "h"}, Library{}, ""},
	} {
		dir := t.TempDir()
		for name, text := range tc.files {
			p := filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		root, err := rootfs.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		got, ok := Find(root)
		if got != tc.want || ok != (tc.want.Kind != "") {
			t.Errorf("%s: got %+v, %v; want %+v", tc.name, got, ok, tc.want)
		}
		if arch := Arch(root); arch != tc.arch {
			t.Errorf("%s: architecture %q, want %q", tc.name, arch, tc.arch)
		}
	}
}

// TestThisHost: the tests run on glibc.
func TestThisHost(t *testing.T) {
	t.Parallel()
	root, err := rootfs.Open("/")
	if err != nil {
		t.Fatal(err)
	}
	if l, ok := Find(root); !ok || l.Kind == "glibc" && l.Version == "" {
		t.Errorf("got %+v, %v", l, ok)
	}
}
