package extwheel

import (
	"archive/zip"
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/invar-ops/invar/internal/python"
	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/run"
	"github.com/invar-ops/invar/internal/testkit"
)

type entry struct {
	name, text string
	mode       fs.FileMode
}

func archive(t *testing.T, entries ...entry) string {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, e := range entries {
		h := &zip.FileHeader{Name: e.name, Method: zip.Deflate}
		h.SetMode(e.mode | 0o644)
		f, err := w.CreateHeader(h)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write([]byte(e.text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "x.zip")
	if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestUnzip(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "x")
	err := Unzip(t.Context(), archive(t, entry{"a/", "", fs.ModeDir | 0o755}, entry{"a/b.sh", "hello", 0o755}, entry{"c/d/e", "", 0}), dir)
	if err != nil {
		t.Fatal(err)
	}
	st, err := os.Stat(filepath.Join(dir, "a/b.sh"))
	if b, _ := os.ReadFile(filepath.Join(dir, "a/b.sh")); err != nil || string(b) != "hello" || st.Mode().Perm()&0o100 == 0 {
		t.Errorf("got %q, %v, %v", b, st, err)
	}
	for name, file := range map[string]string{
		"out of it":         archive(t, entry{"../x", "", 0}),
		"deep out of it":    archive(t, entry{"a/../../x", "", 0}),
		"absolute":          archive(t, entry{"/x", "", 0}),
		"not clean":         archive(t, entry{"a//b", "", 0}),
		"backslash":         archive(t, entry{`..\x`, "", 0}),
		"link":              archive(t, entry{"x", "/etc/passwd", fs.ModeSymlink}),
		"twice":             archive(t, entry{"x", "1", 0}, entry{"x", "2", 0}),
		"file under a file": archive(t, entry{"x", "1", 0}, entry{"x/y", "2", 0}),
		"bomb":              archive(t, entry{"x", strings.Repeat("0", 8<<20), 0}),
	} {
		dir := filepath.Join(t.TempDir(), "x")
		if err := Unzip(t.Context(), file, dir); report.ExitCode(err) != report.Unmet {
			t.Errorf("%s: got %v", name, err)
		}
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%s: something is left", name)
		}
	}
	good, _ := os.ReadFile(archive(t, entry{"x", strings.Repeat("abcdefgh", 999), 0}))
	for name, b := range map[string][]byte{"cut": good[:len(good)/2], "page": []byte("<html>"), "empty": nil, "changed": flip(good, 45)} {
		file := filepath.Join(t.TempDir(), "x.zip")
		if err := os.WriteFile(file, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := Unzip(t.Context(), file, filepath.Join(t.TempDir(), "x")); report.ExitCode(err) != report.Unmet {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func flip(b []byte, at int) []byte {
	b = bytes.Clone(b)
	b[at] ^= 0x10
	return b
}

func write(t *testing.T, dir string, files map[string]string) string {
	t.Helper()
	for name, text := range files {
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestProject(t *testing.T) {
	t.Parallel()
	const pkg = "batch_invariant_ops"
	for _, tc := range []struct {
		name  string
		files []string
		want  string // "" is a refusal
	}{
		{"the released layout", []string{"torch_ops_extension/" + pkg + "/setup.py", "torch_ops_extension/" + pkg + "/" + pkg + "/__init__.py"}, "torch_ops_extension/" + pkg},
		{"the project itself", []string{"setup.py", pkg + "/__init__.py"}, "."},
		{"src layout", []string{"x/pyproject.toml", "x/src/" + pkg + "/__init__.py"}, "x"},
		{"beside others", []string{"other/setup.py", pkg + "/setup.py", pkg + "/build/" + pkg + "/setup.py"}, pkg},
		{"none", []string{"other/setup.py"}, ""},
		{"two", []string{"a/" + pkg + "/setup.py", "b/" + pkg + "/setup.py"}, ""},
	} {
		files := map[string]string{}
		for _, f := range tc.files {
			files[f] = ""
		}
		dir := write(t, t.TempDir(), files)
		got, err := Project(dir, pkg)
		if tc.want == "" {
			if report.ExitCode(err) != report.Unmet {
				t.Errorf("%s: got %q, %v", tc.name, got, err)
			}
			continue
		}
		if rel, _ := filepath.Rel(dir, got); err != nil || rel != tc.want {
			t.Errorf("%s: got %q, %v", tc.name, got, err)
		}
	}
}

func build(t *testing.T, py python.Python, files map[string]string) (string, error) {
	t.Helper()
	scratch := t.TempDir()
	b := Build{
		Runner: run.System{}, Python: py, Project: write(t, filepath.Join(scratch, "project"), files), Scratch: scratch,
		Env: []string{"PATH=/usr/bin:/bin", "CXXFLAGS=-bad"}, Package: "batch_invariant_ops", Arch: "x86_64", Jobs: 2,
		Log: filepath.Join(scratch, "log"), Note: func(string) {},
	}
	return b.Make(t.Context())
}

const setup = "from setuptools import setup\nsetup(name='batch_invariant_ops', version='1.0', packages=['batch_invariant_ops'])\n"

// The project is built by the chosen Python, with the back end that it names.
func TestMake(t *testing.T) {
	t.Parallel()
	py := testkit.Need(t, testkit.Floor)
	for _, tc := range []struct {
		name  string
		files map[string]string
		want  string // in the wheel's name, or in the error
		ok    bool
	}{
		{"setup.py", map[string]string{"setup.py": setup}, "batch_invariant_ops-1.0-py3-none-any.whl", true},
		{"pyproject.toml", map[string]string{"pyproject.toml": "[build-system]\nrequires=['setuptools']\nbuild-backend='setuptools.build_meta'\n[project]\nname='batch-invariant-ops'\nversion='2'\n"}, "batch_invariant_ops-2-", true},
		{"the environment of the build", map[string]string{"setup.py": `import os, sys
assert os.environ["MAX_JOBS"] == "2" and "CXXFLAGS" not in os.environ and os.environ["HOME"].endswith("/home"), os.environ
assert os.environ["PATH"].split(":")[0] == os.path.dirname(sys.executable)
open(os.path.join(os.environ["HOME"], ".gitconfig"), "w").close()
` + setup}, "batch_invariant_ops-1.0-", true},
		{"another package", map[string]string{"setup.py": strings.ReplaceAll(setup, "name='batch_invariant_ops'", "name='other'")}, "another package", false},
		{"a wheel for another Python", map[string]string{"setup.py": strings.Replace(setup, "version='1.0'", "version='1.0', options={'bdist_wheel': {'python_tag': 'cp27'}}", 1)}, "another Python", false},
		{"an error in it", map[string]string{"setup.py": "raise SystemExit('no torch_npu here')\n"}, "no torch_npu here", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			tc.files["batch_invariant_ops/__init__.py"] = ""
			file, err := build(t, py, tc.files)
			if tc.ok {
				if err != nil || !strings.HasPrefix(filepath.Base(file), tc.want) {
					p, _ := errors.AsType[*report.Problem](err)
					t.Fatalf("got %s, %v %+v", file, err, p)
				}
				return
			}
			p, is := errors.AsType[*report.Problem](err)
			if !is || p.Code != report.BuildFailed || !strings.Contains(p.Error()+p.Tail, tc.want) {
				t.Errorf("got %v (%+v)", err, p)
			}
		})
	}
}
