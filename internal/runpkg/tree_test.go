package runpkg_test

import (
	"os"
	"path/filepath"
	"testing"
)

// sample makes a tree with what trees have: empty files and folders, names
// with spaces and beyond ASCII, long names, links, executables, content that
// compresses and content that does not.
func sample(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	random := make([]byte, 300_000)
	x := uint32(1)
	for i := range random {
		x = x*1664525 + 1013904223
		random[i] = byte(x >> 24)
	}
	long := "deep/" + string(make100('d')) + "/" + string(make100('f')) + ".json"
	for name, content := range map[string][]byte{
		"lib/libinvar_cpu.so":        append(make([]byte, 700_000), random...),
		"include/invar/cpu.h":        []byte("int invar_contract(void);\n"),
		"bin/tool":                   []byte("#!/bin/sh\necho tool\n"),
		"empty":                      nil,
		"a file":                     []byte("spaces  inside\n"),
		" leading":                   []byte("a leading space\n"),
		"überlänge/größe.txt":        []byte("beyond ASCII\n"),
		".hidden/.file":              []byte("dots\n"),
		"-starts-with-dash":          []byte("dash\n"),
		"quote's \"and\" $dollar `b": []byte("shell characters\n"),
		long:                         []byte("{}\n"),
	} {
		p := filepath.Join(dir, name)
		must(t, os.MkdirAll(filepath.Dir(p), 0o755))
		must(t, os.WriteFile(p, content, 0o644))
	}
	must(t, os.Chmod(filepath.Join(dir, "bin/tool"), 0o755))
	must(t, os.Mkdir(filepath.Join(dir, "hollow"), 0o755))
	must(t, os.Symlink("libinvar_cpu.so", filepath.Join(dir, "lib/libinvar.so")))
	must(t, os.Symlink("../include/invar", filepath.Join(dir, "lib/include")))
	must(t, os.Symlink("nowhere", filepath.Join(dir, "dangling link")))
	return dir
}

func make100(c byte) []byte {
	b := make([]byte, 95)
	for i := range b {
		b[i] = c
	}
	return b
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
