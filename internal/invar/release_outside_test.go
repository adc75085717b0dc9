package invar

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/invar-ops/invar/internal/elffile"
	"github.com/invar-ops/invar/internal/install"
	"github.com/invar-ops/invar/internal/probe"
	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/rootfs"
)

// outside puts what was installed into a root of its own, at the same paths, and
// probes it there: nothing of it is started, and nothing of this machine counts.
func (r rig) outside(t *testing.T, rec install.Receipt) {
	t.Helper()
	root := filepath.Join(t.TempDir(), "root")
	for _, dir := range []string{r.Prefix, r.py.Prefix, filepath.Join(r.tree.Root, "usr"), filepath.Join(r.tree.Root, "etc")} {
		if err := os.CopyFS(filepath.Join(root, dir), os.DirFS(dir)); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	r.pythonInto(t, root, rec)
	look := func(env ...string) (probe.Result, error) {
		view, err := rootfs.Open(root)
		if err != nil {
			t.Fatal(err)
		}
		return probe.Run(t.Context(), probe.Options{Root: view, Env: env})
	}
	res, err := look()
	if err != nil || res.Prefix != r.Prefix || res.Target != rec.Target {
		t.Errorf("from outside: %s", explain(err))
	}
	for _, l := range res.Levels {
		if want := map[int]report.Status{probe.Files: report.Pass, probe.Wiring: report.Pass, probe.Kernels: report.Pass}[l.Level]; want != "" && l.Status != want {
			t.Errorf("level %d: %s (%s), want %s", l.Level, l.Status, l.Reason, want)
		}
	}
	// A vendor that vllm-ascend's workers would put first serves other functions.
	worker := filepath.Join(root, rec.Python.Paths[0], "vllm_ascend/_cann_ops_custom/vendors/custom_transformer")
	if err := os.CopyFS(worker, os.DirFS(rec.VendorDir())); err != nil {
		t.Fatal(err)
	}
	res, err = look()
	if !slices.ContainsFunc(res.Checks, func(c report.Check) bool {
		return c.Level == probe.Wiring && strings.Contains(c.Name, "workers") && c.Status == report.Fail && strings.Contains(c.Got, "custom_transformer")
	}) || report.ExitCode(err) != report.CheckFailed {
		t.Errorf("another vendor first: %v", err)
	}
	if err := os.WriteFile(filepath.Join(root, r.tree.SetEnv), []byte("export SOMETHING=else\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := look(); report.ExitCode(err) != report.Inconclusive {
		t.Errorf("other scripts of CANN: %v, want exit code 6: they cannot be started", err)
	}
	if err := os.RemoveAll(filepath.Join(root, r.tree.Home)); err != nil {
		t.Fatal(err)
	}
	if _, err := look(); report.ExitCode(err) != report.CheckFailed || !strings.Contains(err.Error(), "CANN of this installation is not in this root") {
		t.Errorf("no CANN: %v", err)
	}
}

// pythonInto copies the interpreter and the C libraries, and leaves of torch and
// torch_npu what is looked at from outside: that they are there.
func (r rig) pythonInto(t *testing.T, root string, rec install.Receipt) {
	t.Helper()
	exe, err := filepath.EvalSymlinks(r.py.Exe)
	if err != nil {
		t.Fatal(err)
	}
	paths := []string{exe}
	libraries := []string{exe, filepath.Join(rec.VendorDir(), "op_api/lib/libcust_opapi.so")}
	for _, f := range rec.Files {
		if strings.HasSuffix(f.Path, ".so") {
			libraries = append(libraries, filepath.Join(rec.Dir(), f.Path))
		}
	}
	for _, lib := range libraries {
		f, err := elffile.Read(lib)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range elffile.NewLoader("", "").Tree(f) {
			if l.Path != "" && !strings.HasPrefix(l.Path, r.tree.Root) && !strings.HasPrefix(l.Path, r.Prefix) {
				paths = append(paths, l.Path)
			}
		}
	}
	for _, p := range paths {
		b, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		put(t, filepath.Join(root, p), string(b))
	}
	for _, pattern := range []string{"torch", "torch-*.dist-info", "torch_npu"} {
		hits, err := filepath.Glob(filepath.Join(r.py.Purelib, pattern))
		if err != nil || len(hits) != 1 {
			t.Fatalf("%s: %v, %v", pattern, hits, err)
		}
		at := filepath.Join(root, hits[0])
		if err := os.RemoveAll(at); err != nil {
			t.Fatal(err)
		}
		put(t, filepath.Join(at, "lib", "README"), "")
		names, err := filepath.Glob(filepath.Join(hits[0], "lib", "*.so*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range names {
			put(t, filepath.Join(at, "lib", filepath.Base(n)), "")
		}
	}
	if _, err := os.Stat(filepath.Join(root, r.py.Purelib, install.HookName)); err != nil {
		t.Fatal(err)
	}
}
