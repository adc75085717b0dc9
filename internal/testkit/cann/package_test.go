package cann

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/invar-ops/invar/internal/elffile"
	"github.com/invar-ops/invar/internal/runpkg"
)

// TestRunPackage installs every variant as its users would.
func TestRunPackage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		p    Package
		code int
		says string
	}{
		{"A2", Package{}, 0, "SUCCESS"},
		{"A3 patched", Package{SoC: "ascend910_93", Patched: true}, 0, "SUCCESS"},
		{"950", Package{SoC: "ascend950", Version: "2.0.0"}, 0, "SUCCESS"},
		{"other SoC", Package{Variant: OtherSoC}, 0, "SUCCESS"},
		{"fails", Package{Variant: FailsToInstall}, 1, "[ERROR] copy new op_api files failed"},
		{"truncated", Package{Variant: Truncated}, 2, "Unexpected archive size"},
		{"page", Package{Variant: HTMLPage}, 2, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			path := RunPackage(t, c.p)
			to := t.TempDir()
			argv := []string{"bash", path, "--", "--install-path=" + to}
			if c.p.Patched {
				argv = []string{"bash", path, "--install-path=" + to}
			}
			res, err := Run(t, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}, argv...)
			if res.Code != c.code || !strings.Contains(string(res.Stdout)+string(res.Stderr), c.says) {
				t.Fatalf("ended with %d (%v)\n%s%s", res.Code, err, res.Stdout, res.Stderr)
			}
			if c.code != 0 {
				return
			}
			lib, err := elffile.Read(filepath.Join(to, "vendors", "batch_invariant", "op_api", "lib", "libcust_opapi.so"))
			if err != nil || !lib.Exported("aclnnMmBatchInvariantGetWorkspaceSize") {
				t.Error("libcust_opapi.so:", err)
			}
			pkg, err := runpkg.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			want := runpkg.KindMakeself
			if c.p.Patched {
				want = runpkg.KindHuawei
			}
			if pkg.Kind != want {
				t.Errorf("%s is of kind %s, want %s", path, pkg.Kind, want)
			}
			if err := pkg.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestOtherMachine cross-compiles: the packages for aarch64 are real ELF files.
func TestOtherMachine(t *testing.T) {
	t.Parallel()
	other := map[string]string{"x86_64": "aarch64", "aarch64": "x86_64"}[Arch()]
	tree := New(t, Options{Arch: other})
	for _, path := range []string{filepath.Join(tree.Lib, "libascendcl.so"), Package{}.library().compiled(t, other)} {
		f, err := elffile.Read(path)
		if err != nil || f.Arch != other {
			t.Errorf("%s: %v, %+v", path, err, f)
		}
	}
}
