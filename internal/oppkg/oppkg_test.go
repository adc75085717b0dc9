package oppkg

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/invar-ops/invar/internal/pins"
	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/run"
	"github.com/invar-ops/invar/internal/runpkg"
	"github.com/invar-ops/invar/internal/testkit/cann"
)

func extract(t *testing.T, p cann.Package) Package {
	t.Helper()
	r, err := runpkg.Open(cann.RunPackage(t, p))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	dir := filepath.Join(t.TempDir(), "x")
	if _, err := r.Extract(t.Context(), dir, runpkg.Options{}); err != nil {
		t.Fatal(err)
	}
	pkg, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	return pkg
}

func want(target string) Want {
	return Want{Target: target, Kernels: []string{target}, Arch: cann.Arch(), CANN: "9.1.0", Vendors: []string{"batch_invariant", "custom_batchinvariant"}}
}

func unmet(rs []report.Requirement) string {
	var out []string
	for _, r := range rs {
		if !r.OK {
			out = append(out, r.Name+": "+r.Got)
			if r.Want == "" || r.Got == "" || r.Hint == "" {
				out = append(out, "(not all said)")
			}
		}
	}
	return strings.Join(out, "; ")
}

func TestJudge(t *testing.T) {
	t.Parallel()
	other := map[string]string{"x86_64": "aarch64", "aarch64": "x86_64"}[cann.Arch()]
	for _, tc := range []struct {
		name   string
		p      cann.Package
		change func(*Want)
		want   string
	}{
		{"A2", cann.Package{}, nil, ""},
		{"A3", cann.Package{SoC: "ascend910_93"}, func(w *Want) { w.Kernels = []string{"ascend910_93"} }, ""},
		{"built by oneself", cann.Package{Vendor: "custom_batchinvariant"}, nil, ""},
		{"another patch of CANN", cann.Package{CANN: "9.1.2"}, nil, ""},
		{"another SoC inside than in its name", cann.Package{Variant: cann.OtherSoC}, nil, "SoC of the run package: kernels for ascend910_93"},
		{"another machine", cann.Package{Variant: cann.OtherMachine}, nil, "architecture of the run package: " + other},
		{"another CANN", cann.Package{CANN: "8.5.1"}, nil, "CANN of the run package: compiled with CANN 8.5.1"},
		{"another CANN, allowed", cann.Package{CANN: "8.5.1"}, func(w *Want) { w.Skew = true }, ""},
		{"another vendor", cann.Package{Vendor: "custom_transformer"}, nil, "vendor of the run package: custom_transformer"},
		{"all of it", cann.Package{Vendor: "x", CANN: "8.3.RC2", SoC: "ascend950"}, nil, "SoC of the run package: kernels for ascend950; CANN of the run package: compiled with CANN 8.3.RC2; vendor of the run package: x"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			w := want("ascend910b")
			if tc.change != nil {
				tc.change(&w)
			}
			if got := unmet(extract(t, tc.p).Judge(w)); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestReadRefusesOtherTrees(t *testing.T) {
	t.Parallel()
	for name, files := range map[string][]string{
		"nothing":     nil,
		"no vendors":  {"install.sh"},
		"two vendors": {vendors + "/a/version.info", vendors + "/b/version.info"},
		"no library":  {vendors + "/a/version.info"},
	} {
		dir := t.TempDir()
		for _, f := range files {
			if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, f)), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, f), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := Read(dir); report.ExitCode(err) != report.Unmet {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func script(t *testing.T, to string, watch ...string) Script {
	t.Helper()
	return Script{Runner: run.System{}, Name: "./install.sh", To: to, Scratch: t.TempDir(), Log: filepath.Join(t.TempDir(), "log"), Watch: watch}
}

// tree lists files with modes, links and contents; the folder's own name is left out of contents.
func tree(t *testing.T, dir string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || p == dir {
			return err
		}
		st, err := d.Info()
		if err != nil {
			return err
		}
		line := strings.TrimPrefix(p, dir) + " " + st.Mode().String()
		switch {
		case d.Type()&fs.ModeSymlink != 0:
			to, _ := os.Readlink(p)
			line += " -> " + to
		case !d.IsDir():
			b, _ := os.ReadFile(p)
			line += fmt.Sprintf(" %x", strings.ReplaceAll(string(b), dir, "DIR"))
		}
		out = append(out, line)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Copying and the package's own script give the same tree.
func TestCopyIsWhatTheScriptDoes(t *testing.T) {
	t.Parallel()
	for _, p := range []cann.Package{{}, {SoC: "ascend910_93"}, {SoC: "ascend950", Version: "2.0.0", Vendor: "custom_batchinvariant"}} {
		pkg := extract(t, p)
		a, b := filepath.Join(t.TempDir(), "ops"), filepath.Join(t.TempDir(), "ops")
		ran, err := pkg.Install(t.Context(), script(t, a))
		if err != nil {
			t.Fatal(err)
		}
		if err := pkg.Copy(b, cann.Arch()); err != nil {
			t.Fatal(err)
		}
		ta, tb := tree(t, a), tree(t, b)
		if !slices.Equal(ta, tb) {
			t.Errorf("%+v (%+v):\nscript %d entries, copy %d", p, ran, len(ta), len(tb))
			for _, l := range ta {
				if !slices.Contains(tb, l) {
					t.Errorf("script only: %.150s", l)
				}
			}
			for _, l := range tb {
				if !slices.Contains(ta, l) {
					t.Errorf("copy only: %.150s", l)
				}
			}
		}
		if len(ta) < 20 {
			t.Errorf("only %d entries: the comparison says little", len(ta))
		}
		if err := Whole(b, pkg.Vendor); err != nil {
			t.Error(err)
		}
	}
}

func TestInstallRefusesWhatGoesOutside(t *testing.T) {
	t.Parallel()
	pkg := extract(t, cann.Package{Variant: cann.WritesOutside})
	top := t.TempDir()
	_, err := pkg.Install(t.Context(), script(t, filepath.Join(top, "ops")))
	if report.ExitCode(err) != report.BuildFailed || !strings.Contains(problem(err).Got, "escaped") || !strings.Contains(problem(err).Got, ".bashrc") {
		t.Errorf("got %v (%+v)", err, err)
	}
	// Elsewhere: refused by the kernel where it can, found afterwards where it is watched.
	for _, quiet := range []string{"", " 2>/dev/null"} {
		pkg := extract(t, cann.Package{})
		far := t.TempDir()
		f, err := os.OpenFile(filepath.Join(pkg.Dir, "install.sh"), os.O_WRONLY|os.O_TRUNC, 0)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(f, "(echo x >%s/x)%s\nmkdir -p %s/vendors\necho SUCCESS\n", far, quiet, "${2#*=}")
		_ = f.Close()
		ran, err := pkg.Install(t.Context(), script(t, filepath.Join(t.TempDir(), "ops"), far))
		left, _ := os.ReadDir(far)
		if err == nil {
			t.Errorf("a script that writes elsewhere passed: %+v", ran)
		}
		if ran.Confined.Files && len(left) != 0 {
			t.Errorf("the kernel was to refuse it: %v", left)
		}
	}
}

func TestInstallFails(t *testing.T) {
	t.Parallel()
	pkg := extract(t, cann.Package{Variant: cann.FailsToInstall})
	_, err := pkg.Install(t.Context(), script(t, filepath.Join(t.TempDir(), "ops")))
	p, ok := errors.AsType[*report.Problem](err)
	if !ok || p.Code != report.BuildFailed || !strings.Contains(p.Tail, "copy new op_api files failed") || p.Log == "" {
		t.Errorf("got %+v", err)
	}
}

func TestRepair(t *testing.T) {
	t.Parallel()
	src, _, err := pins.Of("ascend910_93")
	if err != nil {
		t.Fatal(err)
	}
	pkg := extract(t, cann.Package{SoC: "ascend910_93"})
	to, opp := filepath.Join(t.TempDir(), "ops"), t.TempDir()
	if err := pkg.Copy(to, cann.Arch()); err != nil {
		t.Fatal(err)
	}
	known := src.RepairsOf("1.0.0")
	offered, err := Repair(to, pkg.Vendor, opp, known, false)
	if err != nil || len(offered) != 2 || offered[0].Done {
		t.Fatalf("got %+v, %v", offered, err)
	}
	done, err := Repair(to, pkg.Vendor, opp, known, true)
	if err != nil || len(done) != 2 || !done[0].Done {
		t.Fatalf("got %+v, %v", done, err)
	}
	for _, r := range done {
		if _, err := os.Stat(filepath.Join(to, r.Link)); err != nil {
			t.Error(err)
		}
	}
	if again, err := Repair(to, pkg.Vendor, opp, known, true); err != nil || len(again) != 0 {
		t.Errorf("a second time: %+v, %v", again, err)
	}
	if other, _ := Repair(to, pkg.Vendor, opp, src.RepairsOf("2.0.0"), true); len(other) != 0 {
		t.Errorf("version 2.0.0 has no such defect: %+v", other)
	}
}

// problem is err as one, empty when it is none.
func problem(err error) *report.Problem {
	if p, ok := errors.AsType[*report.Problem](err); ok {
		return p
	}
	return &report.Problem{}
}
