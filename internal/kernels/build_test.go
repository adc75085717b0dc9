package kernels

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/invar-ops/invar/internal/run"
	"github.com/invar-ops/invar/internal/target"
)

const (
	kernelsDir     = "../../targets/cpu/kernels"
	conformanceDir = "../../targets/cpu/conformance"

	version = "12.34.56-rc.7" // what the library is told that it belongs to
)

// gcc warns about its own intrinsics that return an undefined vector.
var gccQuiet = []string{"-Wno-maybe-uninitialized", "-Wno-uninitialized"}

// A machine is a way to compile for and run on one architecture.
type machine struct {
	arch     string
	cc, cxx  string
	emulator []string // in front of a program
	link     []string // of a driver
	quiet    []string // warnings that this compiler gets wrong
}

var (
	host = machine{arch: hostArch(), cc: "gcc", cxx: "g++", quiet: gccQuiet}
	llvm = machine{arch: hostArch(), cc: "clang", cxx: "clang++"}
	arm  = machine{
		arch: "aarch64", cc: "aarch64-linux-gnu-gcc", cxx: "aarch64-linux-gnu-g++",
		emulator: []string{"qemu-aarch64"}, link: []string{"-static"}, quiet: gccQuiet,
	}
)

func hostArch() string {
	if runtime.GOARCH == "arm64" {
		return "aarch64"
	}
	return "x86_64"
}

// need skips the test, or fails it in CI, when a program is missing.
func (m machine) need(t *testing.T) {
	t.Helper()
	for _, name := range append([]string{m.cc, m.cxx}, m.emulator...) {
		if run.Has(name, os.Environ()) {
			continue
		}
		text := name + " is not installed: apt-get install g++ clang gcc-aarch64-linux-gnu g++-aarch64-linux-gnu qemu-user"
		if os.Getenv("INVAR_CI") == "1" {
			t.Fatal(text)
		}
		t.Skip(text)
	}
}

func start(t *testing.T, dir string, env []string, argv ...string) (run.Result, error) {
	t.Helper()
	env = append(slices.DeleteFunc(os.Environ(), func(kv string) bool {
		return strings.HasPrefix(kv, "INVAR_CPU_ISA=")
	}), env...)
	return run.System{}.Run(t.Context(), run.Cmd{Argv: argv, Dir: dir, Env: env, Timeout: 5 * time.Minute})
}

func mustRun(t *testing.T, argv ...string) string {
	t.Helper()
	res, err := start(t, "", nil, argv...)
	if err != nil {
		if e, ok := errors.AsType[*run.Error](err); ok {
			t.Fatalf("%v\n%s\n%s", err, e.Cmd, e.Tail(20))
		}
		t.Fatal(err)
	}
	return string(res.Stdout)
}

// stage1 is how the target says that its library is built.
func stage1(t *testing.T) target.Stage1 {
	t.Helper()
	cpu, err := target.Find("cpu")
	if err != nil {
		t.Fatal(err)
	}
	s := cpu.Stage1
	s.Flags = slices.Clone(s.Flags) // targets are decoded once and shared
	for i := range s.Flags {
		s.Flags[i] = strings.ReplaceAll(s.Flags[i], "{version}", version)
	}
	return s
}

// objects compiles every source of the library into dir and lists the results.
func (m machine) objects(t *testing.T, dir, sources string) []string {
	t.Helper()
	s := stage1(t)
	var out []string
	var wait sync.WaitGroup
	for _, o := range s.For(m.arch) {
		obj := filepath.Join(dir, o.Name+".o")
		out = append(out, obj)
		argv := slices.Concat([]string{m.cxx}, s.Flags, o.Flags,
			[]string{"-Wall", "-Wextra", "-Werror"}, m.quiet,
			[]string{"-c", filepath.Join(sources, o.Source), "-o", obj})
		wait.Go(func() { mustRun(t, argv...) })
	}
	wait.Wait()
	if len(out) == 0 {
		t.Fatalf("target.yaml names no object for %s", m.arch)
	}
	return out
}

// library builds libinvar_cpu.so from sources into dir.
func (m machine) library(t *testing.T, dir, sources string) string {
	t.Helper()
	s := stage1(t)
	lib := filepath.Join(dir, s.Library)
	mustRun(t, slices.Concat([]string{m.cxx, "-shared", "-o", lib}, m.objects(t, dir, sources), s.Link)...)
	return lib
}

// program builds a C driver: against the library on the host, with the objects
// in it elsewhere, where no dynamic loader may be at hand.
func (m machine) program(t *testing.T, dir, name string) []string {
	t.Helper()
	exe := filepath.Join(dir, name)
	argv := []string{
		m.cc, "-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", "-I", kernelsDir,
		filepath.Join(conformanceDir, name+".c"), "-o", exe,
	}
	if m.emulator == nil {
		argv = append(argv, "-L", dir, "-linvar_cpu", "-Wl,-rpath,$ORIGIN")
	} else {
		objects, err := filepath.Glob(filepath.Join(dir, "*.o"))
		if err != nil {
			t.Fatal(err)
		}
		argv = append(argv, objects...)
	}
	mustRun(t, slices.Concat(argv, m.link, []string{"-lpthread"})...)
	return append(slices.Clone(m.emulator), exe)
}

// built compiles library and drivers once for all tests of a machine.
type built struct {
	once        sync.Once
	dir         string
	driver, abi []string
	levels      []string
}

var hostBuilt, llvmBuilt, armBuilt built

func (b *built) get(t *testing.T, m machine) *built {
	t.Helper()
	m.need(t)
	b.once.Do(func() {
		dir := filepath.Join(tempRoot, m.cc) // outlives this test: others use it too
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if m.emulator == nil {
			m.library(t, dir, kernelsDir)
		} else {
			m.objects(t, dir, kernelsDir)
		}
		b.driver, b.abi = m.program(t, dir, "driver"), m.program(t, dir, "abi")
		b.levels = strings.Fields(mustRun(t, append(slices.Clone(b.abi), "levels")...))
		b.dir = dir
	})
	if b.dir == "" {
		t.Fatal("library or drivers were not built, see the first failure")
	}
	return b
}

var tempRoot string

func TestMain(m *testing.M) {
	var err error
	if tempRoot, err = os.MkdirTemp("", "invar-kernels"); err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(tempRoot)
	os.Exit(code)
}
