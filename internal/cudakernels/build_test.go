package cudakernels

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/invar-ops/invar/internal/run"
)

const (
	kernelsDir     = "../../targets/cuda/kernels"
	conformanceDir = "../../targets/cuda/conformance"

	version = "12.34.56-rc.7" // what the library is told that it belongs to
)

var (
	deviceSources = []string{"rows", "norm", "mm_bf16", "mm_f16", "mm_f32", "mm_end"}
	hostSources   = []string{"rows", "mm", "about"}
)

func start(t *testing.T, argv ...string) (run.Result, error) {
	t.Helper()
	return run.System{}.Run(t.Context(), run.Cmd{Argv: argv, Env: os.Environ(), Timeout: 8 * time.Minute})
}

func mustRun(t *testing.T, argv ...string) string {
	t.Helper()
	res, err := start(t, argv...)
	if err != nil {
		if e, ok := errors.AsType[*run.Error](err); ok {
			t.Fatalf("%v\n%s\n%s", err, e.Cmd, e.Tail(20))
		}
		t.Fatal(err)
	}
	return string(res.Stdout) + string(res.Stderr)
}

// needCompiler skips the test, or fails it in CI, where there is no g++.
func needCompiler(t *testing.T) {
	t.Helper()
	if run.Has("g++", os.Environ()) {
		return
	}
	if os.Getenv("INVAR_CI") == "1" {
		t.Fatal("g++ is not installed: apt-get install g++")
	}
	t.Skip("g++ is not installed: apt-get install g++")
}

// emulated compiles one source for the emulator into dir. -ffp-contract=off is
// nvcc's --fmad=false.
func emulated(t *testing.T, dir, kernels, source, object string) string {
	t.Helper()
	object = filepath.Join(dir, object+".o")
	argv := []string{
		"g++", "-std=c++17", "-O1", "-fPIC", "-ffp-contract=off", "-Wall", "-Wextra", "-Werror", "-Wno-clobbered",
		"-DINVAR_EMULATED", "-DINVAR_CUDA_ARCHES=emulated", "-DINVAR_CUDA_VERSION=" + version,
		"-I", filepath.Join(kernels, "include"), "-I", kernels, "-I", filepath.Join(kernels, "host"),
		"-I", conformanceDir, "-x", "c++", "-c", source, "-o", object,
	}
	mustRun(t, argv...)
	return object
}

// emulator builds the driver with the kernels of a folder in it. Objects that
// are given are linked instead of those that the emulator already has.
func (b *built) emulator(t *testing.T) string {
	t.Helper()
	needCompiler(t)
	b.once.Do(func() {
		b.objects = map[string]string{}
		var wait sync.WaitGroup
		var lock sync.Mutex
		compile := func(name, source string) {
			wait.Go(func() {
				object := emulated(t, tempRoot, kernelsDir, source, name)
				lock.Lock()
				defer lock.Unlock()
				b.objects[name] = object
			})
		}
		for _, name := range deviceSources {
			compile(name, filepath.Join(kernelsDir, name+".cu"))
		}
		for _, name := range hostSources {
			compile("host_"+name, filepath.Join(kernelsDir, "host", name+".cpp"))
		}
		compile("emulate", filepath.Join(conformanceDir, "emulate.cpp"))
		compile("driver", filepath.Join(conformanceDir, "driver.cpp"))
		wait.Wait()
		b.exe = b.link(t, "driver", nil)
	})
	if b.exe == "" {
		t.Fatal("the emulator was not built, see the first failure")
	}
	return b.exe
}

// link makes a driver with some objects in the place of others.
func (b *built) link(t *testing.T, name string, instead map[string]string) string {
	t.Helper()
	exe := filepath.Join(tempRoot, name)
	argv := []string{"g++", "-o", exe}
	for part, object := range b.objects {
		if other, ok := instead[part]; ok {
			object = other
		}
		argv = append(argv, object)
	}
	mustRun(t, argv...)
	return exe
}

type built struct {
	once    sync.Once
	objects map[string]string
	exe     string
}

var host built

var tempRoot string

func TestMain(m *testing.M) {
	var err error
	if tempRoot, err = os.MkdirTemp("", "invar-cudakernels"); err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(tempRoot)
	os.Exit(code)
}
