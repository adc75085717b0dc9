package wheel

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/invar-ops/invar/internal/elffile"
	"github.com/invar-ops/invar/internal/testkit"
)

// need finds a program that a test cannot do without, or skips.
func need(t testing.TB, path, why string) string {
	t.Helper()
	p, err := exec.LookPath(path)
	if err == nil {
		return p
	}
	if os.Getenv("INVAR_CI") == "1" {
		t.Fatalf("no %s: %s", path, why)
	}
	t.Skipf("no %s: %s", path, why)
	return ""
}

// auditTool is a program of the virtual environment with auditwheel and
// torch-abi-audit in the cache of this project's heavy test environments.
func auditTool(t testing.TB, name string) string {
	t.Helper()
	cache := testkit.Cache()
	return need(t, filepath.Join(cache, "audit", "bin", name), "uv venv "+cache+"/audit && uv pip install --python "+cache+"/audit/bin/python auditwheel torch-abi-audit")
}

func cxx(t testing.TB, dir, name, src string, args ...string) string {
	t.Helper()
	gxx := need(t, "g++", "a C++ compiler makes the libraries of this test")
	in, out := filepath.Join(dir, name+".cpp"), filepath.Join(dir, name)
	if err := os.WriteFile(in, []byte(src), 0o644); err != nil {
		t.Fatal(err)
	}
	args = append([]string{"-shared", "-fPIC", "-o", out, in}, args...)
	if text, err := exec.CommandContext(t.Context(), gxx, args...).CombinedOutput(); err != nil {
		t.Fatalf("g++ %v: %v\n%s", args, err, text)
	}
	return out
}

// TestTagAgreesWithAuditwheel compares our verdict with that of the tool that
// the policies come from, on libraries with different needs.
func TestTagAgreesWithAuditwheel(t *testing.T) {
	t.Parallel()
	auditwheel := auditTool(t, "auditwheel")
	for _, tc := range []struct{ name, src, args string }{
		{"nothing", `extern "C" int f() { return 1; }`, "-nostdlib"},
		{"old symbol", `#include <stdlib.h>
			extern "C" int f() { return rand(); }`, ""},
		{"math", `#include <math.h>
			extern "C" double f(double x) { return exp(x) + pow(x, 2.5); }`, ""},
		{"streams", `#include <iostream>
			#include <string>
			extern "C" void f(double x) { std::cout << std::to_string(x); }`, ""},
		{"threads", `#include <thread>
			#include <mutex>
			extern "C" void f() { std::thread([] {}).join(); }`, ""},
		{"filesystem", `#include <filesystem>
			#include <charconv>
			extern "C" int f(char* b, char* e, double x) { return std::filesystem::exists("/") + (std::to_chars(b, e, x).ptr - b); }`, "-std=c++17"},
		{"thread-local with destructor", `struct S { ~S(); int x; }; int n; S::~S() { n++; }
			thread_local S s; extern "C" int f() { return s.x++; }`, ""},
		{"new C library function", `#include <string.h>
			#include <math.h>
			extern "C" double f(double x) { return fmod(x, 3.0) + fmodf(x, 2.f); }`, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			lib := cxx(t, dir, "lib_x.so", tc.src, strings.Fields(tc.args)...)
			compareTag(t, auditwheel, lib)
		})
	}
}

// TestTagOfExtension does it for a library that needs torch, which auditwheel
// cannot know to be there already: it must blame nothing but torch's libraries.
func TestTagOfExtension(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cxx(t, dir, "libtorch_cpu.so", "extern \"C\" int torch_shim() { return 1; }", "-Wl,-soname,libtorch_cpu.so")
	lib := cxx(t, dir, "lib_ops.so", "#include <string>\nextern \"C\" int torch_shim();\nextern \"C\" int f() { return torch_shim() + std::to_string(1.0).size(); }", "-L"+dir, "-ltorch_cpu")
	f, err := elffile.Read(lib)
	if err != nil {
		t.Fatal(err)
	}
	with, err := PlatformOf([]*elffile.File{f})
	if err != nil || with.Tag != "linux_"+f.Arch || len(with.Reasons) != 1 || with.Reasons[0].Needs != "libtorch_cpu.so" {
		t.Errorf("got %+v, %v, want linux because of libtorch_cpu.so", with, err)
	}
	without, err := PlatformOf([]*elffile.File{f}, "libtorch_cpu.so")
	if err != nil || !strings.HasPrefix(without.Tag, "manylinux_2_") || len(without.Reasons) == 0 {
		t.Errorf("got %+v, %v, want manylinux with a reason", without, err)
	}
}

// compareTag wraps lib in a wheel and asks auditwheel about it.
func compareTag(t *testing.T, auditwheel, lib string) {
	t.Helper()
	f, err := elffile.Read(lib)
	if err != nil {
		t.Fatal(err)
	}
	got, err := PlatformOf([]*elffile.File{f})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	w, err := Write(t.Context(), dir, Project{Name: "x", Version: "1"}, []Layer{{os.DirFS(filepath.Dir(lib)), "lib_x.so", "x/lib_x.so"}}, Tag{"py3", "none", "linux_" + f.Arch})
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), auditwheel, "show", "--json", w.Path).Output()
	if err != nil {
		t.Fatalf("auditwheel: %v\n%s", err, out)
	}
	var said struct {
		Tag string `json:"overall_tag"`
	}
	if err := json.Unmarshal(out, &said); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if got.Tag != said.Tag {
		t.Errorf("got %s because of %+v, auditwheel says %s:\n%s", got.Tag, got.Reasons, said.Tag, out)
	}
}
