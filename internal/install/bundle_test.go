package install

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/invar-ops/invar/internal/python"
	"github.com/invar-ops/invar/internal/runpkg"
	"github.com/invar-ops/invar/internal/wheel"
)

// A bundle is a real run package and a real wheel with small contents.
type bundle struct{ run, wheel string }

// makeBundle writes a bundle whose files carry mark, so that two bundles can
// be told apart; size pads the library.
func makeBundle(t testing.TB, dir, mark string, size int) bundle {
	t.Helper()
	ops := fstest.MapFS{
		"lib/libinvar_cpu.so": {Data: append([]byte(mark), bytes.Repeat([]byte("x"), size)...), Mode: 0o755},
		"share/contract.txt":  {Data: []byte(mark)},
	}
	run := filepath.Join(dir, "invar-ops-cpu-"+mark+"-linux.x86_64.run")
	_, err := runpkg.Write(t.Context(), run, runpkg.Spec{
		Manifest: runpkg.Manifest{Name: "invar-ops-cpu", Version: "1.0.0", Platform: "linux.x86_64"}, Tree: ops,
	})
	if err != nil {
		t.Fatal(err)
	}
	src := fstest.MapFS{
		Package + "/__init__.py": {Data: []byte("MARK = '" + mark + "'\n")},
		Package + "/_C.so":       {Data: bytes.Repeat([]byte(mark), 1+size/8)},
		Package + "/py.typed":    {},
	}
	for _, name := range []string{"a", "b", "c", "d"} {
		src[Package+"/"+name+".py"] = &fstest.MapFile{Data: []byte("MARK = '" + mark + "'\n")}
	}
	w, err := wheel.Write(t.Context(), dir, wheel.Project{Name: "batch_invariant_ops", Version: "1.0.0+" + mark},
		[]wheel.Layer{{FS: src, From: ".", To: "."}}, wheel.Tag{Python: "py3", ABI: "none", Platform: "linux_x86_64"})
	if err != nil {
		t.Fatal(err)
	}
	return bundle{run, w.Path}
}

// fakePython is an environment with folders only; no test that uses it starts Python.
func fakePython(t testing.TB) python.Python {
	t.Helper()
	dir := t.TempDir()
	site := filepath.Join(dir, "lib", "python3.11", "site-packages")
	if err := os.MkdirAll(site, 0o755); err != nil {
		t.Fatal(err)
	}
	return python.Python{Exe: filepath.Join(dir, "bin", "python"), Version: "3.11.7", Prefix: dir, Purelib: site, Paths: []string{site}, Venv: true}
}

func request(py python.Python) Request {
	return Request{Bundle: Bundle{Target: "cpu", Flavour: "cpu", Fingerprint: "f", Contract: "1"}, Python: py, Invar: "test"}
}

func openPrefix(t testing.TB) *Prefix {
	t.Helper()
	p, err := Open(filepath.Join(t.TempDir(), "home"))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func apply(t testing.TB, p *Prefix, req Request, b bundle) Receipt {
	t.Helper()
	r, err := p.Apply(t.Context(), req, b.run, b.wheel)
	if err != nil {
		t.Fatal(err)
	}
	healthy(t, r)
	return r
}

func healthy(t testing.TB, r Receipt) {
	t.Helper()
	h, err := Check(t.Context(), r, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !h.OK || len(h.Extra) > 0 {
		t.Fatalf("generation %d: %+v", r.Generation, h)
	}
}

// tree lists every file below dir with its content, for before and after.
func tree(t testing.TB, dir string) map[string]string {
	t.Helper()
	files, dirs, err := listFiles(dir)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := digests(t.Context(), dir, files, false); err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, f := range files {
		out[f.Path] = f.SHA256 + f.Link
	}
	for _, d := range dirs {
		out[d+"/"] = "dir"
	}
	return out
}
