package wheel

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
)

const pyproject = `
[build-system]
requires = []

[project]
name = "Batch-Invariant.Ops"
version = "1.2.0rc1"
description = "operators"
readme = "README.md"
requires-python = ">=3.10"
license = "Apache-2.0"
license-files = ["LICENSE*"]
authors = [{name = "The authors"}, {name = "A, B", email = "a@example.org"}]
keywords = ["torch", "batch"]
classifiers = ["Programming Language :: Python :: 3"]
dependencies = ["torch>=2.10", "numpy; python_version < '3.12'"]
optional-dependencies = {test = ["pytest; sys_platform == 'linux'"]}
urls = {Home = "https://example.org"}
scripts = {bio = "batch_invariant_ops.cli:main"}

[project.entry-points."vllm.general_plugins"]
bio = "batch_invariant_ops.vllm:register"
`

func source() fstest.MapFS {
	return fstest.MapFS{
		"pyproject.toml":                                  {Data: []byte(pyproject)},
		"README.md":                                       {Data: []byte("# Héllo\n")},
		"LICENSE":                                         {Data: []byte("Apache\n")},
		"batch_invariant_ops/__init__.py":                 {Data: []byte("x = 1\n")},
		"batch_invariant_ops/_ops.py":                     {Data: []byte(strings.Repeat("y = 2\n", 4000))},
		"batch_invariant_ops/py.typed":                    {},
		"batch_invariant_ops/a,\"b\".txt":                 {Data: []byte("csv")},
		"batch_invariant_ops/__pycache__/x.cpython-1.pyc": {Data: []byte("no")},
	}
}

func build(t *testing.T, dir string) Built {
	t.Helper()
	p, err := ReadProject(source(), "pyproject.toml")
	if err != nil {
		t.Fatal(err)
	}
	b, err := Write(t.Context(), dir, p, []Layer{{source(), "batch_invariant_ops", "batch_invariant_ops"}}, Tag{"py3", "none", "any"})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestWriteIsReproducible(t *testing.T) {
	want := build(t, t.TempDir())
	if want.Name != "batch_invariant_ops-1.2.0rc1-py3-none-any.whl" {
		t.Errorf("name %s", want.Name)
	}
	old := syscall.Umask(0o077)
	procs := runtime.GOMAXPROCS(1)
	got := build(t, t.TempDir())
	syscall.Umask(old)
	runtime.GOMAXPROCS(procs)
	if got.SHA256 != want.SHA256 {
		t.Errorf("got %s, want %s", got.SHA256, want.SHA256)
	}
	st, err := os.Stat(got.Path)
	if err != nil || st.Mode().Perm() != 0o644 || st.Size() != got.Size {
		t.Errorf("got mode %v size %d, want 0644 and %d (%v)", st.Mode(), st.Size(), got.Size, err)
	}
}

func TestWriteThenReadAndExtract(t *testing.T) {
	t.Parallel()
	b := build(t, t.TempDir())
	a, err := Open(b.Path)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if a.Name != "Batch-Invariant.Ops" || a.Version != "1.2.0rc1" || len(a.Tags) != 1 || a.Tags[0] != "py3-none-any" {
		t.Errorf("got %+v", a)
	}
	dir := t.TempDir()
	names, err := a.Extract(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		if _, err := os.Stat(filepath.Join(dir, n)); err != nil {
			t.Error(err)
		}
	}
	if len(names) != 4+4+2 { // package; METADATA WHEEL entry_points LICENSE; INSTALLER RECORD
		t.Errorf("got %d files: %v", len(names), names)
	}
}

// TestPipAccepts asks the reference implementation: pip installs the wheel
// and reads its metadata.
func TestPipAccepts(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not on PATH")
	}
	b := build(t, t.TempDir())
	dir := t.TempDir()
	run := func(args ...string) string {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), python, args...).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	run("-m", "pip", "install", "-q", "--no-deps", "--no-index", "--target", dir, b.Path)
	got := run("-c", `
import importlib.metadata as m, sys
sys.path.insert(0, sys.argv[1])
d = m.distribution("batch-invariant-ops")
print(d.metadata["Name"], d.version, d.metadata["License-Expression"], d.metadata.get_all("Requires-Dist"))
print(sorted((e.group, e.name, e.value) for e in d.entry_points))
print(repr(d.metadata.get_payload()), d.metadata["Author"], d.metadata["Author-email"])
import base64, hashlib
for f in d.files:
    if f.hash and "bin/" not in str(f):  # pip made the script
        h = base64.urlsafe_b64encode(hashlib.sha256(f.read_binary()).digest()).decode().rstrip("=")
        assert h == f.hash.value, f
`, dir)
	for _, want := range []string{
		`Batch-Invariant.Ops 1.2.0rc1 Apache-2.0 ['torch>=2.10', "numpy; python_version < '3.12'", 'pytest; (sys_platform == \'linux\') and extra == "test"']`,
		`[('console_scripts', 'bio', 'batch_invariant_ops.cli:main'), ('vllm.general_plugins', 'bio', 'batch_invariant_ops.vllm:register')]`,
		`# Héllo`, `The authors "A, B" <a@example.org>`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("want %s in\n%s", want, got)
		}
	}
}

func TestWriteStopsWithTheContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	dir := t.TempDir()
	p, err := ReadProject(source(), "pyproject.toml")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Write(ctx, dir, p, []Layer{{source(), "batch_invariant_ops", "x"}}, Tag{"py3", "none", "any"}); err == nil {
		t.Error("got no error, want one")
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("litter: %v", left)
	}
}
