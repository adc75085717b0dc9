package invar

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/invar-ops/invar/internal/install"
	"github.com/invar-ops/invar/internal/probe"
	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/rootfs"
	"github.com/invar-ops/invar/internal/testkit"
)

// outside puts what was installed into a root of its own, at the same paths, and
// probes it there: nothing of it is started, and nothing of this machine counts.
func (r rig) outside(t *testing.T, rec install.Receipt) {
	t.Helper()
	root := filepath.Join(t.TempDir(), "root")
	if err := testkit.Mirror(root, r.py, r.Prefix, filepath.Join(r.tree.Root, "usr"), filepath.Join(r.tree.Root, "etc")); err != nil {
		t.Fatal(err)
	}
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
