package toolchain

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/invar-ops/invar/internal/run"
)

func TestInspectReadsBanners(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ banner, vendor, version string }{
		{"g++ (Debian 12.2.0-14+deb12u1) 12.2.0", "gcc", "12.2.0"},
		{"g++ (GCC) 8.5.0 20210514 (Red Hat 8.5.0-20)", "gcc", "8.5.0"},
		{"g++ (Ubuntu 13.3.0-6ubuntu2~24.04) 13.3.0", "gcc", "13.3.0"},
		{"x86_64-conda-linux-gnu-c++ (conda-forge gcc 14.2.0-1) 14.2.0", "gcc", "14.2.0"},
		{"Debian clang version 14.0.6", "clang", "14.0.6"},
		{"clang version 18.1.8 (https://example.org/llvm.git 3b5b5c1ec4a3095ab096dd780e84d7ab81f3d7ff)", "clang", "18.1.8"},
		{"g++ (GCC) 14.1", "gcc", "14.1"},
	} {
		dir := t.TempDir()
		exe := filepath.Join(dir, "c++")
		if err := os.WriteFile(exe, []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		r := run.NewReplay([]run.Exchange{
			{Argv: []string{exe, "--version"}, Stdout: tc.banner + "\nmore\n"},
			{Argv: []string{exe, "-dumpmachine"}, Stdout: "x86_64-linux-gnu\n"},
		})
		c, err := Inspect(t.Context(), "c++", []string{"PATH=" + dir}, r, "")
		if err != nil || c.Vendor != tc.vendor || c.Version != tc.version {
			t.Errorf("%s: got %s %s, %v", tc.banner, c.Vendor, c.Version, err)
		}
	}
}

// A compiler that was seen is not started again; a changed one is.
func TestFindRemembersByIdentity(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	exe, cache := filepath.Join(dir, "g++"), filepath.Join(dir, "home", "cache", "compilers.json")
	if err := os.MkdirAll(filepath.Join(dir, "home"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(exe, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	env := []string{"PATH=" + dir}
	answers := run.NewReplay([]run.Exchange{
		{Argv: []string{exe, "--version"}, Stdout: "g++ (GCC) 12.2.0\n"}, {Argv: []string{exe, "-dumpmachine"}, Stdout: "m\n"},
	})
	if c, _ := Find(t.Context(), env, answers, cache); c.Version != "12.2.0" {
		t.Fatalf("got %+v", c)
	}
	silent := run.NewReplay(nil)
	if c, why := Find(t.Context(), env, silent, cache); c.Version != "12.2.0" {
		t.Errorf("asked again: %+v, %v", c, why)
	}
	if err := os.WriteFile(exe, []byte("#!/bin/sh\n# newer\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if c, why := Find(t.Context(), env, silent, cache); c.Path != "" || len(why) != len(Names) {
		t.Errorf("a changed compiler was not asked: %+v, %v", c, why)
	}
}

func TestFindTakesCXXAlone(t *testing.T) {
	t.Parallel()
	c, why := Find(t.Context(), []string{"PATH=/usr/bin:/bin", "CXX=no-such-compiler"}, run.System{}, "")
	if c.Path != "" || len(why) != 1 || why[0].Command != "no-such-compiler" {
		t.Errorf("got %+v, %+v; want CXX alone to be tried", c, why)
	}
}
