package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/invar-ops/invar/internal/python"
	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/testkit"
)

// TestOutside runs probe --root and --image on a root with a small installation
// and on images of it: reports, schema, exit codes, bad input. What the levels
// say about real operators is tested in internal/probe.
func TestOutside(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir: "testdata/outside",
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"code": code, "schema": schemaCheck, "install": installSmall, "relocate": relocate, "layout": writeLayout, "empty": emptyFolder,
		},
		Setup: func(e *testscript.Env) error {
			e.Setenv("INVAR_HOME", e.WorkDir+"/tree/opt/invar")
			e.Setenv("HOME", e.WorkDir)
			e.Setenv("TMPDIR", e.WorkDir+"/tmp")
			e.Setenv("NO_COLOR", "1")
			return os.Mkdir(e.WorkDir+"/tmp", 0o755)
		},
	})
}

// TestOutsideInterrupted ends a probe in the middle of a layer that a registry
// does not finish: nothing stays, and the exit code says which signal it was.
func TestOutsideInterrupted(t *testing.T) {
	t.Parallel()
	img, err := random.Image(1<<20, 1)
	if err != nil {
		t.Fatal(err)
	}
	f, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	f = f.DeepCopy()
	f.OS, f.Architecture = "linux", runtime.GOARCH
	if img, err = mutate.ConfigFile(img, f); err != nil {
		t.Fatal(err)
	}
	m, err := img.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	store := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	reached := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || !strings.Contains(r.URL.Path, m.Layers[0].Digest.String()) {
			store.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Length", strconv.FormatInt(m.Layers[0].Size, 10))
		_, _ = w.Write([]byte{0x1f, 0x8b})
		w.(http.Flusher).Flush()
		close(reached)
		<-r.Context().Done()
	}))
	t.Cleanup(server.Close)
	ref, err := name.ParseReference(strings.TrimPrefix(server.URL, "http://") + "/slow:1")
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(ref, img); err != nil {
		t.Fatal(err)
	}
	tmp := t.TempDir()
	cmd := exec.Command("invar", "probe", "--image", ref.String())
	cmd.Env = append(os.Environ(), "TMPDIR="+tmp, "NO_COLOR=1")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-reached:
	case <-time.After(30 * time.Second):
		t.Error("the layer was not asked for")
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if got := cmd.ProcessState.ExitCode(); got != report.Interrupted {
		t.Errorf("exit code %d, want %d\n%s", got, report.Interrupted, out.String())
	}
	if left, _ := os.ReadDir(tmp); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// mirror makes a root in which an installation lies at the same paths: mirror PREFIX VENV ROOT.
func mirror(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: mirror PREFIX VENV ROOT")
	}
	py, ok := python.Inspect(filepath.Join(ts.MkAbs(args[1]), "bin", "python"))
	if !ok {
		ts.Fatalf("%s is no environment", args[1])
	}
	prefix := ts.MkAbs(args[0])
	ts.Check(testkit.Mirror(ts.MkAbs(args[2]), py, filepath.Join(prefix, "env"), filepath.Join(prefix, "store")))
}

// relocate makes what was installed below DIR name its paths as they are inside
// DIR: relocate DIR.
func relocate(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: relocate DIR")
	}
	dir := ts.MkAbs(args[0])
	for _, pattern := range []string{"opt/invar/env/*/gen/*/receipt.json", "opt/invar/env/*/state.json", "opt/py/lib/python3*/site-packages/invar.pth"} {
		hits, err := filepath.Glob(filepath.Join(dir, pattern))
		ts.Check(err)
		for _, h := range hits {
			b, err := os.ReadFile(h)
			ts.Check(err)
			ts.Check(os.WriteFile(h, []byte(strings.ReplaceAll(string(b), dir, "")), 0o644))
		}
	}
}

// writeLayout makes an image of one layer: layout ROOT OUT [NAME=VALUE...].
func writeLayout(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: layout ROOT OUT [NAME=VALUE...]")
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	ts.Check(errors.Join(w.AddFS(os.DirFS(ts.MkAbs(args[0]))), w.Close()))
	l, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b.Bytes())), nil })
	ts.Check(err)
	img, err := mutate.AppendLayers(mutate.MediaType(empty.Image, types.OCIManifestSchema1), l)
	ts.Check(err)
	f, err := img.ConfigFile()
	ts.Check(err)
	f = f.DeepCopy()
	f.OS, f.Architecture, f.Config = "linux", runtime.GOARCH, v1.Config{Env: args[2:]}
	img, err = mutate.ConfigFile(img, f)
	ts.Check(err)
	path, err := layout.Write(ts.MkAbs(args[1]), empty.Index)
	ts.Check(err)
	ts.Check(path.AppendImage(img))
}

// emptyFolder wants nothing in a folder: empty DIR.
func emptyFolder(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: empty DIR")
	}
	entries, err := os.ReadDir(ts.MkAbs(args[0]))
	ts.Check(err)
	if len(entries) > 0 {
		ts.Fatalf("%s holds %v", args[0], entries)
	}
}
