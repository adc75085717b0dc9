package cann

import (
	"archive/zip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/invar-ops/invar/internal/run"
	"github.com/invar-ops/invar/internal/testkit"
)

//go:embed all:stage2
var stage2 embed.FS

// A Caller is how the operators of a wheel project reach their aclnn functions.
type Caller string

// The ways, of which the first two load with the torch_npu of the package index.
const (
	ExecExt   Caller = "EXEC_NPU_CMD_EXT" // torch_npu's macro
	OwnHeader Caller = "op_api_common.h"  // vllm-ascend's header, taken from its source tree
	// OldMacro is EXEC_NPU_CMD of torch_npu's op_api_common.h: it compiles, and
	// does not load with the torch_npu of the package index.
	OldMacro Caller = "EXEC_NPU_CMD"
)

// NeedVLLMAscend is the source tree of vllm-ascend that .ci/setup unpacks.
func NeedVLLMAscend(t testing.TB) string {
	t.Helper()
	notShort(t)
	dir := filepath.Join(testkit.Cache(), "vllm-ascend", "vllm_ascend-0.23.0.post1")
	if _, err := os.Stat(filepath.Join(dir, "setup.py")); err != nil {
		if os.Getenv("INVAR_CI") == "1" {
			t.Fatal(err)
		}
		t.Skipf("needs the vllm-ascend source tree: %v; .ci/setup makes it", err)
	}
	return dir
}

// project lists the files of the wheel project.
func project(t testing.TB, version string, by Caller) map[string]string {
	t.Helper()
	const dir = "torch_ops_extension/batch_invariant_ops/"
	out := map[string]string{}
	for from, to := range map[string]string{
		"ops.cpp": "csrc/ops.cpp", "setup.py": "setup.py", "init.py": "batch_invariant_ops/__init__.py", "build_and_install.sh": "build_and_install.sh",
	} {
		b, err := stage2.ReadFile(path.Join("stage2", from))
		if err != nil {
			t.Fatal(err)
		}
		out[dir+to] = strings.ReplaceAll(string(b), "@VERSION@", version)
	}
	if by == OldMacro {
		out[dir+"csrc/ops.cpp"] = "#define OLD_MACRO\n" + out[dir+"csrc/ops.cpp"]
	}
	if by == OwnHeader {
		adapter := os.DirFS(filepath.Join(NeedVLLMAscend(t), "csrc", "aclnn_torch_adapter"))
		names, err := fs.Glob(adapter, "*")
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			b, err := fs.ReadFile(adapter, name)
			if err != nil {
				t.Fatal(err)
			}
			out[dir+"csrc/"+name] = string(b)
		}
	}
	return out
}

// Stage2Name is the file name of the project as it is released.
func Stage2Name(version string) string {
	return fmt.Sprintf("batch_invariant-torch_ops_extension-%s.zip", version)
}

// Stage2Zip makes the wheel project of a version as a zip in dir ("" is a new
// folder) and gives its path.
func Stage2Zip(t testing.TB, dir, version string, by Caller) string {
	t.Helper()
	if dir == "" {
		dir = t.TempDir()
	}
	out := filepath.Join(dir, Stage2Name(version))
	zipped(t, out, project(t, version, by))
	return out
}

// Stage2Tree writes the wheel project into dir and gives the folder with setup.py.
func Stage2Tree(t testing.TB, dir, version string, by Caller) string {
	t.Helper()
	for name, content := range project(t, version, by) {
		write(t, filepath.Join(dir, name), content, 0o644)
	}
	return filepath.Join(dir, "torch_ops_extension", "batch_invariant_ops")
}

// Wheel is the wheel of the project, built once into the CI cache with the
// Python of Environment as on a machine without a driver.
func Wheel(t testing.TB, version string, by Caller) string {
	t.Helper()
	py := testkit.Need(t, Environment)
	h := sha256.New()
	files := project(t, version, by)
	for _, name := range sorted(files) {
		fmt.Fprintf(h, "%s %d\n%s", name, len(files[name]), files[name])
	}
	fmt.Fprintln(h, py.Exe, py.Version)
	dir := filepath.Join(testkit.Cache(), "look-alike", hex.EncodeToString(h.Sum(nil))[:16])
	if found, _ := filepath.Glob(filepath.Join(dir, "*.whl")); len(found) == 1 {
		return found[0]
	}
	work := Stage2Tree(t, t.TempDir(), version, by)
	// NpuExtension imports torch_npu, which needs CANN and devlib, and no device.
	env := New(t, Options{NoDriver: true}).Env("PATH="+filepath.Dir(py.Exe)+":"+os.Getenv("PATH"), "HOME="+t.TempDir(), "MAX_JOBS=2")
	res, err := run.System{}.Run(t.Context(), run.Cmd{Argv: []string{py.Exe, "setup.py", "-q", "bdist_wheel"}, Dir: work, Env: env})
	if err != nil {
		t.Fatalf("%v\n%s%s", err, res.Stdout, res.Stderr)
	}
	made, _ := filepath.Glob(filepath.Join(work, "dist", "*.whl"))
	if len(made) != 1 {
		t.Fatalf("%d wheels in %s", len(made), work)
	}
	install(t, made[0], filepath.Join(dir, filepath.Base(made[0])))
	return filepath.Join(dir, filepath.Base(made[0]))
}

func sorted(files map[string]string) []string {
	var out []string
	for name := range files {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// Site unpacks the wheel and gives a folder for PYTHONPATH.
func Site(t testing.TB, by Caller) string {
	t.Helper()
	dir := t.TempDir()
	r, err := zip.OpenReader(Wheel(t, "1.0.0", by))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	if err := os.CopyFS(dir, r); err != nil {
		t.Fatal(err)
	}
	return dir
}

// PrebuiltZip is Stage2Zip with the extension compiled already: its setup.py
// packs the library of Wheel. For tests that are not about compiling.
func PrebuiltZip(t testing.TB, dir, version string, by Caller) string {
	t.Helper()
	out := filepath.Join(dir, Stage2Name(version))
	built, err := zip.OpenReader(Wheel(t, "1.0.0", by))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = built.Close() }()
	const top = "torch_ops_extension/batch_invariant_ops/"
	files := map[string]string{top + "setup.py": strings.ReplaceAll(prebuiltSetup, "@VERSION@", version)}
	for _, f := range built.File {
		if !strings.HasPrefix(f.Name, "batch_invariant_ops/") {
			continue
		}
		b, err := fs.ReadFile(built, f.Name)
		if err != nil {
			t.Fatal(err)
		}
		files[top+f.Name] = strings.ReplaceAll(string(b), `"1.0.0"`, `"`+version+`"`)
	}
	zipped(t, out, files)
	return out
}

// prebuiltSetup makes a wheel for this Python and machine, as one with an
// extension is, and needs torch_npu as that does.
const prebuiltSetup = `from setuptools import Distribution, setup
from torch_npu.utils.cpp_extension import NpuExtension  # noqa: F401


class Compiled(Distribution):
    def has_ext_modules(self):
        return True


setup(
    name="batch_invariant_ops",
    version="@VERSION@",
    packages=["batch_invariant_ops"],
    package_data={"batch_invariant_ops": ["*.so"]},
    install_requires=["torch"],
    distclass=Compiled,
)
`

// zipped writes files as a zip.
func zipped(t testing.TB, out string, files map[string]string) {
	t.Helper()
	f, err := os.Create(out)
	if err != nil {
		t.Fatal(err)
	}
	w := zip.NewWriter(f)
	for _, name := range sorted(files) {
		h := &zip.FileHeader{Name: name, Method: zip.Deflate}
		h.SetMode(0o644)
		if strings.HasSuffix(name, ".sh") {
			h.SetMode(0o755)
		}
		part, err := w.CreateHeader(h)
		if err == nil {
			_, err = part.Write([]byte(files[name]))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}
