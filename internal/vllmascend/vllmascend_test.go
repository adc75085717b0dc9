package vllmascend

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/invar-ops/invar/internal/fetch"
	"github.com/invar-ops/invar/internal/python"
	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/run"
	"github.com/invar-ops/invar/internal/store"
	"github.com/invar-ops/invar/internal/testkit"
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

// tree is a small source tree of the version.
func tree(t *testing.T, more map[string]string) string {
	t.Helper()
	return write(t, write(t, t.TempDir(), map[string]string{
		"setup.py": "", "vllm_ascend/__init__.py": "",
		script: "#!/bin/bash\nURL=\"https://h/cann-ops-batch_invariant-${DEVICE}-2.0.0-linux.${ARCH}.run\"\nexit 9\n",
	}), more)
}

func open(t *testing.T, dir string) Tree {
	t.Helper()
	x, err := Open(t.Context(), run.System{}, dir, os.Environ())
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func TestOpen(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		files   map[string]string
		version string
	}{
		"sdist":    {map[string]string{"PKG-INFO": "Metadata-Version: 2.4\nName: vllm_ascend\nVersion: 0.23.0.post1\n\nVersion: text\n"}, "0.23.0.post1"},
		"built":    {map[string]string{"vllm_ascend/_version.py": "__all__ = []\nversion: str\n__version__ = version = '0.22.1rc2.dev3+g12ab'\n"}, "0.22.1rc2.dev3+g12ab"},
		"no trace": {nil, ""},
	} {
		got := open(t, tree(t, tc.files))
		if got.Version != tc.version || got.Ops != "2.0.0" {
			t.Errorf("%s: got %+v", name, got)
		}
	}
	if _, err := Open(t.Context(), run.System{}, t.TempDir(), nil); report.ExitCode(err) != report.Unmet {
		t.Errorf("an empty folder: got %v", err)
	}
}

func TestOpenTheReleasedTree(t *testing.T) {
	t.Parallel()
	got := open(t, cann.NeedVLLMAscend(t))
	if got.Version != "0.23.0.post1" || got.Ops != "1.0.0" {
		t.Errorf("got %+v", got)
	}
}

func TestMatch(t *testing.T) {
	t.Parallel()
	site := t.TempDir()
	py := python.Python{Exe: "/p", Purelib: site, Paths: []string{site}}
	x := Tree{Dir: "/t", Version: "0.23.0.post1"}
	if err := x.Match(py, false); report.ExitCode(err) != report.Unmet || !strings.Contains(problem(err).Hint, "--install-vllm-ascend") {
		t.Errorf("not installed: got %v", err)
	}
	if err := os.Mkdir(filepath.Join(site, "vllm_ascend-0.23.0.post1+g1.dist-info"), 0o755); err != nil {
		t.Fatal(err)
	}
	for version, ok := range map[string]bool{"0.23.0.post1": true, "0.23.0-post1+local": true, "0.23.0": false, "0.22.1rc1": false, "": false} {
		x.Version = version
		if err := x.Match(py, false); (err == nil) != ok {
			t.Errorf("%q: got %v", version, err)
		}
		if err := x.Match(py, true); err != nil {
			t.Errorf("%q with skew: got %v", version, err)
		}
	}
}

// The shim passes arguments and exit code through, and goes without a trace.
func TestShim(t *testing.T) {
	t.Parallel()
	dir := tree(t, nil)
	original, _ := os.ReadFile(filepath.Join(dir, script))
	bin := write(t, t.TempDir(), map[string]string{"invar": "#!/bin/sh\necho \"$@\"\nexit 4\n"})
	for range 2 {
		if _, err := Shim(dir); err != nil {
			t.Fatal(err)
		}
	}
	res, _ := run.System{}.Run(t.Context(), run.Cmd{Argv: []string{"bash", filepath.Join(dir, script), "ascend910b"}, Env: []string{"PATH=" + bin + ":/usr/bin:/bin"}})
	if res.Code != 4 || string(res.Stdout) != "build ascend910b\n" {
		t.Errorf("ended with %d, %q", res.Code, res.Stdout)
	}
	if x := open(t, dir); x.Ops != "2.0.0" {
		t.Errorf("behind a shim the tree says %+v", x)
	}
	for range 2 {
		if _, err := Unshim(dir); err != nil {
			t.Fatal(err)
		}
	}
	back, _ := os.ReadFile(filepath.Join(dir, script))
	st, _ := os.Stat(filepath.Join(dir, script))
	left, _ := filepath.Glob(filepath.Join(dir, "csrc", "*"))
	if !bytes.Equal(back, original) || st.Mode().Perm() != 0o755 || len(left) != 1 {
		t.Errorf("after undo: %q, %v, %v", back, st.Mode(), left)
	}
	// A script that somebody changed in between is theirs.
	if _, err := Shim(dir); err != nil {
		t.Fatal(err)
	}
	write(t, dir, map[string]string{script: "theirs"})
	if _, err := Unshim(dir); err == nil {
		t.Error("undo overwrote a changed script")
	}
	if _, err := Shim(dir); err == nil {
		t.Error("a second shim overwrote the original")
	}
	if _, err := Shim(t.TempDir()); report.ExitCode(err) != report.Unmet {
		t.Errorf("no tree: got %v", err)
	}
}

func sdist(t *testing.T, names map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for name, text := range names {
		h := &tar.Header{Name: name, Mode: 0o755, Size: int64(len(text)), Typeflag: tar.TypeReg}
		if to, ok := strings.CutPrefix(text, "-> "); ok {
			h.Typeflag, h.Linkname, h.Size, text = tar.TypeSymlink, to, 0, ""
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func index(t *testing.T, asJSON bool, name, sum string, body []byte) (string, fetch.Options) {
	t.Helper()
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, name):
			_, _ = w.Write(body)
		case r.URL.Path == "/simple/vllm-ascend/" && asJSON:
			fmt.Fprintf(w, `{"files": [{"filename": "vllm_ascend-0.1-py3-none-any.whl", "url": "x", "hashes": {}}, {"filename": %q, "url": "../../f/%s", "hashes": {"sha256": %q}}]}`, name, name, sum)
		case r.URL.Path == "/simple/vllm-ascend/":
			fmt.Fprintf(w, "<!DOCTYPE html><html><body>\n<a href=\"x.whl\">vllm_ascend-0.1-py3-none-any.whl</a>\n<a data-requires-python=\"&gt;=3.9\" href=\"/f/%s#sha256=%s\">%s</a></body></html>", name, sum, name)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(s.Close)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	return s.URL + "/simple", fetch.Options{Cache: t.TempDir(), CAFiles: []string{ca}}
}

var good = map[string]string{
	"vllm_ascend-0.23.0/setup.py": "", "vllm_ascend-0.23.0/vllm_ascend/__init__.py": "", "vllm_ascend-0.23.0/" + script: "x",
	"vllm_ascend-0.23.0/PKG-INFO": "Version: 0.23.0\n\n", "vllm_ascend-0.23.0/link": "-> setup.py",
}

func TestSource(t *testing.T) {
	t.Parallel()
	for _, asJSON := range []bool{true, false} {
		body := sdist(t, good)
		url, o := index(t, asJSON, "vllm_ascend-0.23.0.tar.gz", store.DigestBytes(body), body)
		s := Source{Version: "0.23.0", Index: url, Into: t.TempDir(), Fetch: o}
		f, err := s.Get(t.Context(), run.System{}, nil)
		if err != nil || f.Tree.Version != "0.23.0" {
			t.Fatalf("json %v: got %+v, %v", asJSON, f, err)
		}
		if _, err := s.Get(t.Context(), run.System{}, nil); err == nil {
			t.Error("a tree that is there was overwritten")
		}
		s.Version = "0.24.0"
		if _, err := s.Get(t.Context(), run.System{}, nil); report.ExitCode(err) != report.Unmet {
			t.Errorf("a version that is not there: got %v", err)
		}
		url, s.Fetch = index(t, asJSON, "vllm_ascend-0.23.0.tar.gz", strings.Repeat("0", 64), body)
		s.Index, s.Version, s.Into = url, "0.23.0", t.TempDir()
		if _, err := s.Get(t.Context(), run.System{}, nil); err == nil || exists(filepath.Join(s.Into, "vllm_ascend-0.23.0")) {
			t.Errorf("content that the index does not promise: got %v", err)
		}
	}
	if _, err := (Source{Version: "1", Index: "http://192.0.2.1/simple", Into: t.TempDir()}).Get(t.Context(), run.System{}, nil); err == nil || !strings.Contains(err.Error(), "plain http") {
		t.Errorf("plain http: got %v", err)
	}
}

func TestUntarStaysInside(t *testing.T) {
	t.Parallel()
	for _, bad := range []map[string]string{
		{"x/../../y": "1"}, {"x/a": "-> ../../y"}, {"x/a": "-> /etc/passwd"}, {"x//etc/y": "1"},
	} {
		top := t.TempDir()
		file := filepath.Join(top, "f")
		if err := os.WriteFile(file, sdist(t, bad), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := untar(t.Context(), file, filepath.Join(top, "d", "..", "tree")); err == nil || exists(filepath.Join(top, "tree")) || exists(filepath.Join(top, "y")) {
			t.Errorf("%v: got %v", bad, err)
		}
	}
}

// The install runs in the tree with what option 1 of vllm-ascend's docs sets,
// and the way back is printed.
func TestInstall(t *testing.T) {
	t.Parallel()
	py, err := testkit.Private(testkit.Need(t, testkit.Floor), filepath.Join(t.TempDir(), "py"))
	if err != nil {
		t.Fatal(err)
	}
	const setup = `import os
from setuptools import setup
keys = ("COMPILE_CUSTOM_KERNELS", "VLLM_BATCH_INVARIANT", "SOC_VERSION", "INVAR_INSIDE", "MAX_JOBS", "ASCEND_HOME_PATH")
open(os.environ["SAW"], "w").write(" ".join(os.environ.get(k, "-") for k in keys))
if os.environ.get("BREAK"):
    raise SystemExit("bisheng compilation tool not found")
setup(name="vllm-ascend", version="0.23.0", packages=["vllm_ascend"])
`
	dir := tree(t, map[string]string{"setup.py": setup, "PKG-INFO": "Version: 0.23.0\n\n"})
	saw := filepath.Join(t.TempDir(), "saw")
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "SAW=" + saw, "ASCEND_HOME_PATH=/c", "VLLM_BATCH_INVARIANT=1", "UV_OFFLINE=1"}
	i := Install{Runner: run.System{}, Python: py, Tree: open(t, dir), SoC: "ascend910b1", Env: env, Jobs: 3, Log: filepath.Join(t.TempDir(), "log")}
	for _, editable := range []bool{false, true} {
		i.Editable = editable
		changes, err := i.Run(t.Context())
		if err != nil {
			t.Fatalf("%v\n%s", err, problem(err).Tail)
		}
		if b, _ := os.ReadFile(saw); string(b) != "1 0 ascend910b1 1 3 /c" {
			t.Errorf("setup.py saw %q", b)
		}
		if !editable && (len(changes) != 1 || changes[0] != Change{Name: Dist, Now: "0.23.0"} || !strings.Contains(Back(py, changes), "uninstall --yes vllm-ascend")) {
			t.Errorf("changes: %+v, back %s", changes, Back(py, changes))
		}
		if err := i.Tree.Match(py, false); err != nil {
			t.Error(err)
		}
	}
	i.Env = append(env, "BREAK=1")
	_, err = i.Run(t.Context())
	if p, ok := errors.AsType[*report.Problem](err); !ok || p.Code != report.BuildFailed || !strings.Contains(p.Tail, "bisheng") || p.Log == "" {
		t.Errorf("a build that fails: got %+v", err)
	}
}

// TestFresh takes away what would stop or mislead the tree's own scripts, and
// nothing that belongs to this environment.
func TestFresh(t *testing.T) {
	t.Parallel()
	site := t.TempDir()
	py := python.Python{Exe: filepath.Join(site, "python"), Purelib: site, Paths: []string{site}}
	for name, tc := range map[string]struct {
		cache string // {tree}, {python}, {site}
		gone  string // part of what is said, "" keeps the folder
	}{
		"of this environment":  {"CMAKE_CACHEFILE_DIR:INTERNAL={tree}/csrc/build\nPYTHON_EXECUTABLE:FILEPATH={python}\nASCEND_HOME_PATH:PATH=/c\n", ""},
		"of another Python":    {"PYTHON_EXECUTABLE:FILEPATH=/usr/bin/python3.8\n", "PYTHON_EXECUTABLE=/usr/bin/python3.8"},
		"of another CANN":      {"ASCEND_HOME_PATH:UNINITIALIZED=/old\n", "ASCEND_HOME_PATH=/old"},
		"of another torch_npu": {"TORCH_NPU_PATH:UNINITIALIZED=/torch_npu\n", "TORCH_NPU_PATH=/torch_npu"},
		"of a moved tree":      {"CMAKE_CACHEFILE_DIR:INTERNAL=/elsewhere/csrc/build\n", "another folder"},
		"of pip's isolation":   {"Torch_DIR:PATH=/tmp/pip-build-env-x/overlay/lib\n", "pip-build-env-x"},
		"comments":             {"//PYTHON_EXECUTABLE=/x\n# a=b\nPYTHON_EXECUTABLE:FILEPATH=\n", ""},
	} {
		if err := os.MkdirAll(filepath.Join(site, "torch_npu-2.9.0.dist-info"), 0o755); err != nil {
			t.Fatal(err)
		}
		dir := tree(t, nil)
		text := strings.NewReplacer("{tree}", dir, "{python}", py.Exe).Replace(tc.cache)
		write(t, dir, map[string]string{"csrc/build/CMakeCache.txt": text, "csrc/build/cann-ops-transformer-x.run": "", "csrc/build/object.o": ""})
		i := Install{Python: py, Tree: Tree{Dir: dir}, Env: []string{"ASCEND_HOME_PATH=/c"}}
		gone, err := i.fresh()
		if err != nil {
			t.Fatal(err)
		}
		all := strings.Join(gone, "\n")
		if exists(filepath.Join(dir, "csrc/build/cann-ops-transformer-x.run")) || !strings.Contains(all, "cann-ops-transformer-x.run") {
			t.Errorf("%s: the installer: %s", name, all)
		}
		if kept := exists(filepath.Join(dir, "csrc/build/object.o")); kept != (tc.gone == "") || !strings.Contains(all, tc.gone) {
			t.Errorf("%s: kept %v, said %q", name, kept, all)
		}
	}
}

// A tree whose setup.py asks pip is not given to uv where there is no pip.
func TestInstallWithoutPip(t *testing.T) {
	t.Parallel()
	bin := write(t, t.TempDir(), map[string]string{"uv": "#!/bin/sh\nexit 7\n"})
	i := Install{Runner: run.System{}, Python: python.Python{Exe: "/p/bin/python"}, Tree: Tree{Dir: tree(t, map[string]string{"setup.py": "c = \"python3 -m pip show torch-npu | grep x\"\n"})}, Env: []string{"PATH=" + bin}}
	if _, err := i.Run(t.Context()); report.ExitCode(err) != report.Unmet || !strings.Contains(problem(err).Got, "/torch_npu") {
		t.Errorf("got %v", err)
	}
	i.Tree.Dir = tree(t, nil)
	if argv, err := i.argv(); err != nil || argv[0] != "uv" {
		t.Errorf("a tree that does not ask: %v, %v", argv, err)
	}
}

// TestVendor finds the package of each kind of install, and the vendor in it.
func TestVendor(t *testing.T) {
	t.Parallel()
	for name, files := range map[string]map[string]string{
		"in site-packages": {"site/vllm_ascend/__init__.py": ""},
		"by a .pth file":   {"site/x.pth": "import os\n# x\n../tree\n", "tree/vllm_ascend/__init__.py": ""},
		"editable by pip":  {"site/vllm_ascend-1.dist-info/direct_url.json": `{"dir_info": {"editable": true}, "url": "file://{}/tree"}`, "tree/vllm_ascend/__init__.py": ""},
		"a tree that was copied": {
			"site/vllm_ascend-1.dist-info/direct_url.json": `{"dir_info": {}, "url": "file://{}/tree"}`,
			"tree/vllm_ascend/__init__.py":                 "", "site/vllm_ascend/__init__.py": "",
		},
	} {
		dir := t.TempDir()
		for f, text := range files {
			files[f] = strings.ReplaceAll(text, "{}", dir)
		}
		write(t, dir, files)
		got := Package(python.Python{Paths: []string{filepath.Join(dir, "site")}})
		want := filepath.Join(dir, "tree", "vllm_ascend")
		if _, ok := files["site/vllm_ascend/__init__.py"]; ok {
			want = filepath.Join(dir, "site", "vllm_ascend")
		}
		if got != want || Vendor(got) != "" {
			t.Errorf("%s: got %s, %q, want %s", name, got, Vendor(got), want)
		}
		write(t, got, map[string]string{ownVendor + "/version.info": ""})
		if Vendor(got) != filepath.Join(got, ownVendor) {
			t.Errorf("%s: its vendor is not found", name)
		}
	}
	if Package(python.Python{}) != "" || Vendor("") != "" {
		t.Error("found where nothing is")
	}
}

// problem is err as one, empty when it is none.
func problem(err error) *report.Problem {
	if p, ok := errors.AsType[*report.Problem](err); ok {
		return p
	}
	return &report.Problem{}
}
