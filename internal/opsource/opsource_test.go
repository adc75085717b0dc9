package opsource

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/run"
	"github.com/invar-ops/invar/internal/testkit/cann"
)

func write(t *testing.T, dir string, files map[string]string) string {
	t.Helper()
	for name, text := range files {
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// build runs a tree whose build.sh is as given; PACKAGE in it is a real run package.
func build(t *testing.T, script string, change func(*Build)) (Build, string, error) {
	t.Helper()
	pkg, other := cann.RunPackage(t, cann.Package{}), cann.RunPackage(t, cann.Package{CANN: "9.0.0"})
	tree := write(t, t.TempDir(), map[string]string{
		"csrc/build.sh": "#!/bin/bash\nset -e\n" + strings.NewReplacer("PACKAGE", pkg, "OTHER", other).Replace(script), "csrc/op.cpp": "1",
		// What an older build left is not taken for a new one.
		"csrc/build/old.run": "old", "csrc/build_out/old.run": "older",
	})
	bin := write(t, t.TempDir(), map[string]string{"bisheng": "#!/bin/sh\n"})
	b := Build{
		Runner: run.System{}, Tree: tree, SoC: "ascend910b", Ops: []string{"mm", "sum"}, Scratch: t.TempDir(), Jobs: 3,
		Env: []string{"PATH=" + bin + ":/usr/bin:/bin", "HOME=" + t.TempDir(), "ASCEND_CUSTOM_OPP_PATH=/x"}, Log: filepath.Join(t.TempDir(), "log"),
	}
	if change != nil {
		change(&b)
	}
	before := cann.Files(t, tree)
	home := run.Getenv(b.Env, "HOME")
	file, err := b.Make(t.Context())
	if !slices.Equal(before, cann.Files(t, tree)) {
		t.Error("the tree itself was changed")
	}
	if left, _ := os.ReadDir(home); len(left) != 0 {
		t.Errorf("left in the user's home: %v", left)
	}
	return b, file, err
}

func TestMake(t *testing.T) {
	t.Parallel()
	third := t.TempDir()
	_, file, err := build(t, `echo "$@" >args
[ -z "$ASCEND_CUSTOM_OPP_PATH" ] && [ "$MAX_JOBS $OPS_CPU_NUMBER" = "3 3" ]
git config --global --add safe.directory "$PWD" 2>/dev/null || echo x >~/.gitconfig
mkdir -p build build_out
cp PACKAGE build/cann-ops-transformer-custom_linux-$(uname -m).run
cp PACKAGE build_out/ # the same once more
echo tool >build/makeself.run
`, func(b *Build) { b.ThirdParty = third })
	if err != nil {
		p, _ := errors.AsType[*report.Problem](err)
		t.Fatalf("%v\n%+v", err, p)
	}
	args, _ := os.ReadFile(filepath.Join(filepath.Dir(filepath.Dir(file)), "args"))
	if want := "--pkg --soc=ascend910b -j3 --ops=mm,sum --cann_3rd_lib_path=" + third + "\n"; string(args) != want {
		t.Errorf("build.sh got %q, want %q", args, want)
	}
}

func TestMakeFails(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, script string
		change       func(*Build)
		code         int
		says         string
	}{
		{"the compiler fails", "echo 'kernel_operator.h: No such file' >&2; exit 2", nil, report.BuildFailed, "kernel_operator.h"},
		{"an unknown SoC ends with 0", "echo 'no custom ACLNN ops configured; skip'; exit 0", nil, report.BuildFailed, "0 run packages"},
		{"two packages", "mkdir -p build; cp PACKAGE build/a.run; cp OTHER build/b.run", nil, report.BuildFailed, "2 run packages"},
		{"a write elsewhere", "echo x >/usr/local/escaped", nil, report.BuildFailed, ""},
		{"no bisheng", "exit 0", func(b *Build) { b.Env = []string{"PATH=/usr/bin:/bin", "HOME=/"} }, report.Unmet, "bisheng"},
		{"offline without archives", "exit 1", func(b *Build) { b.Offline = true }, report.BuildFailed, "--third-party"},
		{"no such folder of archives", "exit 0", func(b *Build) { b.ThirdParty = "/nonexistent" }, report.Usage, "--third-party"},
		{"no tree", "exit 0", func(b *Build) { b.Tree = filepath.Join(b.Tree, "csrc", "build") }, report.Unmet, "build.sh"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if tc.name == "a write elsewhere" {
				t.Cleanup(func() { _ = os.Remove("/usr/local/escaped") })
			}
			change := tc.change
			if tc.name == "no bisheng" {
				change = func(b *Build) { b.Env = []string{"PATH=/usr/bin:/bin", "HOME=" + run.Getenv(b.Env, "HOME")} }
			}
			_, file, err := build(t, tc.script, change)
			p, ok := errors.AsType[*report.Problem](err)
			if !ok || p.Code != tc.code || !strings.Contains(p.Error()+p.Tail+p.Hint+p.Got, tc.says) {
				t.Errorf("got %s, %+v", file, err)
			}
			if _, err := os.Stat("/usr/local/escaped"); err == nil && tc.name == "a write elsewhere" {
				t.Error("it wrote outside its copy")
			}
		})
	}
}

// The digest is that of the sources: what a build leaves does not change it.
func TestDigest(t *testing.T) {
	t.Parallel()
	tree := write(t, t.TempDir(), map[string]string{"build.sh": "", "a.cpp": "1"})
	a, err := Digest(t.Context(), tree)
	if err != nil {
		t.Fatal(err)
	}
	write(t, tree, map[string]string{"build/x.o": "1", "build_out/x.run": "1"})
	if b, _ := Digest(t.Context(), tree); b != a {
		t.Error("outputs count")
	}
	write(t, tree, map[string]string{"a.cpp": "2"})
	if b, _ := Digest(t.Context(), tree); b == a {
		t.Error("sources do not count")
	}
	if _, err := Digest(t.Context(), t.TempDir()); report.ExitCode(err) != report.Unmet {
		t.Errorf("no tree: got %v", err)
	}
}
