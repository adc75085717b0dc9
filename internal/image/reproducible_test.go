package image

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// TestReproducible: buildah makes the same image twice, BuildKit does in its own test.
func TestReproducible(t *testing.T) {
	env := needBuildah(t)
	reproducible(t, binaryRequest(t, env, static(t, "amd64")), bareBase, func(*testing.T) {})
}

// reproducible builds the image of the binary and one with distribution
// packages twice each, at other times, from other folders and files of other
// times: the digests are equal. Another SOURCE_DATE_EPOCH or binary is another
// image, so equality is no accident. fresh empties the builder's cache.
func reproducible(t *testing.T, req Request, debian string, fresh func(*testing.T)) {
	t.Helper()
	for what, build := range map[string]func(*testing.T, Request) string{
		"binary": func(t *testing.T, req Request) string { return digestOf(t, req) },
		"packages": func(t *testing.T, req Request) string {
			req.Base = debian
			return packagesDigest(t, req)
		},
	} {
		first := build(t, req)
		fresh(t)
		time.Sleep(1100 * time.Millisecond) // times in files and configurations are whole seconds
		again := req
		again.Binary = copyOf(t, req.Binary, nil)
		if second := build(t, again); first != second {
			t.Errorf("%s: %s, then %s", what, first, second)
		}
		if what == "packages" {
			continue
		}
		later := req
		later.Epoch = 1700000000
		other := req
		other.Binary = copyOf(t, req.Binary, []byte("\n"))
		if d := build(t, later); d == first {
			t.Errorf("%s: another SOURCE_DATE_EPOCH has the same digest", what)
		}
		if d := build(t, other); d == first {
			t.Errorf("%s: another binary has the same digest", what)
		}
	}
}

// digestOf builds req and gives the digest; the image is removed again.
func digestOf(t *testing.T, req Request) string {
	t.Helper()
	if req.Output != "" {
		req.Output = filepath.Join(t.TempDir(), "image.tar")
	}
	res, err := Build(t.Context(), req)
	if err != nil {
		t.Fatal(full(err))
	}
	forget(t, req, res)
	return res.Digest
}

func forget(t *testing.T, req Request, res Result) {
	t.Helper()
	if res.Output == "" {
		for _, tag := range res.Tags {
			buildah(t, req.Env, "rmi", tag)
		}
	}
}

// packagesDigest is Build for a Dockerfile of the tests, which is in no matrix.
func packagesDigest(t *testing.T, req Request) string {
	t.Helper()
	k := kindOf(req.Builder)
	from, err := resolve(t.Context(), req, Builder{Name: k.name}, req.Base)
	if err != nil {
		t.Fatal(full(err))
	}
	dir := t.TempDir()
	row := Row{Name: "packages", Family: "packages", OS: "debian12", Dockerfile: "cpu.Dockerfile", Tags: []string{req.Repository + ":packages"}}
	job := Job{
		Row: row, Platform: "linux/amd64", Context: filepath.Join(dir, "context"), From: from.From, Epoch: req.Epoch,
		Insecure: from.Insecure, Made: filepath.Join(dir, "made"), Labels: before(row, req, from),
	}
	if err := prepare(job, req); err != nil {
		t.Fatal(full(err))
	}
	text, err := os.ReadFile("testdata/packages.Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(job.Context, "Dockerfile"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	res := Result{Builder: Builder{Name: k.name}, Log: filepath.Join(dir, "log")}
	if req.Output != "" {
		req.Output = filepath.Join(dir, "image.tar")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	if err := carryOut(ctx, k, job, req, &res); err != nil {
		t.Fatal(full(err))
	}
	finish := finishArchive
	if k.store {
		finish = finishInStore
	}
	if err := finish(ctx, req, job, &res); err != nil {
		t.Fatal(full(err))
	}
	forget(t, req, res)
	return res.Digest
}

// copyOf copies a program with more at its end.
func copyOf(t *testing.T, file string, more []byte) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "other")
	if err := os.WriteFile(out, append(b, more...), 0o700); err != nil {
		t.Fatal(err)
	}
	return out
}

// layerOf is a layer of files.
func layerOf(t *testing.T, files map[string][]byte) v1.Layer {
	t.Helper()
	var all bytes.Buffer
	w := tar.NewWriter(&all)
	for name, b := range files {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(b)), Typeflag: tar.TypeReg}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(b); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(all.Bytes())), nil })
	if err != nil {
		t.Fatal(err)
	}
	return layer
}

// mebibytes is a size as mount takes it.
func mebibytes(n int64) string { return fmt.Sprintf("%dm", (n+1<<20-1)>>20) }
