package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"

	"github.com/invar-ops/invar/internal/testkit"
)

// TestCUDA runs the command with the real compiler wheels: what is refused
// before anything is compiled, and the whole job for a GPU that is not here.
func TestCUDA(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("short: compiles GPU code")
	}
	home := testkit.NeedToolkit(t)
	testkit.Need(t, testkit.Latest)
	testkit.Need(t, testkit.Floor)
	testscript.Run(t, testscript.Params{
		Dir: "testdata/cuda", UpdateScripts: *update,
		Condition: func(cond string) (bool, error) {
			_, gpu := os.Stat("/dev/nvidiactl")
			return cond == "root" && os.Geteuid() == 0 || cond == "gpu" && gpu == nil, nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"code": code, "schema": schemaCheck, "venv": venvOf, "mirror": mirror, "broken": brokenToolkit, "edit": editLink, "small": smallDisk,
		},
		Setup: func(e *testscript.Env) error {
			e.Setenv("INVAR_HOME", e.WorkDir+"/home")
			e.Setenv("HOME", e.WorkDir)
			e.Setenv("NO_COLOR", "1")
			e.Setenv("TOOLKIT", home)
			checks, err := filepath.Abs("../../targets/cuda/bench/gpu.py")
			if err != nil {
				return err
			}
			e.Setenv("GPU_CHECKS", checks)
			// The wheels of the toolkit come out of the cache that .ci/setup filled.
			if cache, err := os.UserCacheDir(); err == nil && os.Getenv("UV_CACHE_DIR") == "" {
				e.Setenv("UV_CACHE_DIR", filepath.Join(cache, "uv"))
			}
			for _, kv := range os.Environ() {
				if k, v, _ := strings.Cut(kv, "="); slices.Contains([]string{"SSL_CERT_FILE", "SSL_CERT_DIR", "INVAR_JOBS"}, k) ||
					strings.HasPrefix(k, "UV_") || strings.HasPrefix(k, "PIP_") {
					e.Setenv(k, v)
				}
			}
			return nil
		},
	})
}

// venvOf makes an environment with torch: `venv DIR [torch-2.10] [cpu]`. With
// cpu its torch is one without CUDA, as its version file says.
func venvOf(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 || len(args) > 3 {
		ts.Fatalf("usage: venv DIR [NAME] [cpu]")
	}
	name := testkit.Latest
	if len(args) > 1 {
		name = args[1]
	}
	shared, err := testkit.Shared(name)
	ts.Check(err)
	py, err := testkit.Private(shared, ts.MkAbs(args[0]))
	ts.Check(err)
	if len(args) < 3 {
		return
	}
	torch := filepath.Join(py.Purelib, "torch")
	ts.Check(os.Remove(torch))
	ts.Check(os.Mkdir(torch, 0o755))
	ts.Check(os.WriteFile(filepath.Join(torch, "version.py"), []byte("__version__ = '2.15.0+cpu'\ncuda: Optional[str] = None\n"), 0o644))
}

// brokenToolkit copies the toolkit without some parts: `broken DIR PATH...`.
func brokenToolkit(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: broken DIR [PATH...]")
	}
	ts.Check(testkit.LinkTree(ts.Getenv("TOOLKIT"), ts.MkAbs(args[0]), args[1:]...))
}

// editLink replaces text in a linked file by a copy: `edit FILE FROM TO`.
func editLink(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: edit FILE FROM TO")
	}
	path := ts.MkAbs(args[0])
	b, err := os.ReadFile(path)
	ts.Check(err)
	if !strings.Contains(string(b), args[1]) {
		ts.Fatalf("%s does not hold %q", args[0], args[1])
	}
	ts.Check(os.Remove(path))
	ts.Check(os.WriteFile(path, []byte(strings.ReplaceAll(string(b), args[1], args[2])), 0o644))
}

// smallDisk mounts a disk of that size: `small DIR 1400k`.
func smallDisk(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: small DIR SIZE")
	}
	dir := ts.MkAbs(args[0])
	ts.Check(os.MkdirAll(dir, 0o755))
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size="+args[1]); err != nil {
		ts.Fatalf("mounting a tmpfs needs root with CAP_SYS_ADMIN: %v", err)
	}
	ts.Defer(func() { _ = unix.Unmount(dir, 0) })
}
