package imagefs

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"golang.org/x/sys/unix"

	"github.com/invar-ops/invar/internal/report"
)

// An item is one entry of a layer: a folder ends with "/", a link has "-> ",
// a hard link "=> ".
type item struct{ name, text string }

func tarOf(t testing.TB, items ...item) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, i := range items {
		h := &tar.Header{Name: i.name, Mode: 0o644, Typeflag: tar.TypeReg, Size: int64(len(i.text))}
		switch {
		case strings.HasSuffix(i.name, "/"):
			h.Typeflag, h.Mode = tar.TypeDir, 0o755
		case strings.HasPrefix(i.text, "-> "):
			h.Typeflag, h.Linkname, h.Size = tar.TypeSymlink, i.text[3:], 0
		case strings.HasPrefix(i.text, "=> "):
			h.Typeflag, h.Linkname, h.Size = tar.TypeLink, i.text[3:], 0
		case i.text == "device":
			h.Typeflag, h.Size = tar.TypeChar, 0
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if h.Size > 0 {
			if _, err := io.WriteString(w, i.text); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func imageOf(t testing.TB, layers ...[]item) v1.Image {
	t.Helper()
	img := mutate.MediaType(mutate.ConfigMediaType(empty.Image, types.OCIConfigJSON), types.OCIManifestSchema1)
	for _, items := range layers {
		var err error
		if img, err = mutate.AppendLayers(img, static.NewLayer(tarOf(t, items...), types.OCIUncompressedLayer)); err != nil {
			t.Fatal(err)
		}
	}
	f, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	f = f.DeepCopy()
	f.OS, f.Architecture = "linux", "amd64"
	if img, err = mutate.ConfigFile(img, f); err != nil {
		t.Fatal(err)
	}
	return img
}

func layoutOf(t testing.TB, images ...v1.Image) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "layout")
	l, err := layout.Write(dir, empty.Index)
	if err != nil {
		t.Fatal(err)
	}
	for n, i := range images {
		if err := l.AppendImage(i, layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": string(rune('a' + n))})); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// unpack applies layers and gives the folder.
func unpack(t testing.TB, layers ...[]item) (*Image, string, error) {
	t.Helper()
	img, err := Open(t.Context(), Options{Ref: layoutOf(t, imageOf(t, layers...))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(img.Close)
	dir := t.TempDir()
	return img, dir, img.Unpack(t.Context(), dir)
}

// TestLayers is the merged file system of several layers.
func TestLayers(t *testing.T) {
	t.Parallel()
	_, dir, err := unpack(
		t,
		[]item{
			{"usr/", ""},
			{"usr/lib/", ""},
			{"lib", "-> usr/lib"},
			{"var/run", "-> /run"},
			{"run/", ""},
			{"etc/gone", "1"},
			{"etc/replaced", "1"},
			{"etc/dir/a", "1"},
			{"etc/dir/b", "1"},
			{"etc/opaque/old", "1"},
			{"etc/becomes-file/x", "1"},
			{"etc/becomes-dir", "1"},
			{"etc/first", "same"},
			{"etc/second", "=> etc/first"},
			{"etc/up", "-> ../../../../etc/first"},
		},
		[]item{
			{"etc/.wh.gone", ""},
			{"etc/replaced", "2"},
			{"etc/dir/.wh.a", ""},
			{"etc/opaque/new", "2"},
			{"etc/opaque/.wh..wh..opq", ""},
			{"etc/becomes-file", "2"},
			{"etc/becomes-dir/x", "2"},
			{"lib/through.so", "2"},
			{"var/run/through", "2"},
			{"./etc/dotted", "2"},
			{"/etc/absolute", "2"},
		},
		[]item{{".wh.nothing-there", ""}, {"etc/dir/.wh..wh..opq", ""}},
	)
	if err != nil {
		t.Fatal(err)
	}
	for p, want := range map[string]string{
		"etc/replaced": "2", "etc/opaque/new": "2", "etc/becomes-file": "2", "etc/becomes-dir/x": "2", "usr/lib/through.so": "2",
		"run/through": "2", "etc/dotted": "2", "etc/absolute": "2", "etc/second": "same",
	} {
		if b, err := os.ReadFile(filepath.Join(dir, p)); err != nil || string(b) != want {
			t.Errorf("%s: %q, %v; want %q", p, b, err, want)
		}
	}
	for _, p := range []string{"etc/gone", "etc/dir/a", "etc/dir/b", "etc/opaque/old", "etc/becomes-file/x"} {
		if _, err := os.Lstat(filepath.Join(dir, p)); err == nil {
			t.Errorf("%s is still there", p)
		}
	}
	if to, err := os.Readlink(filepath.Join(dir, "etc/up")); err != nil || to != "../../../../etc/first" {
		t.Errorf("link %q, %v: links are kept as they are, and followed inside the root", to, err)
	}
}

// TestRefused: nothing gets out of the folder.
func TestRefused(t *testing.T) {
	t.Parallel()
	outside := t.TempDir()
	for _, c := range []struct {
		name  string
		items []item
		says  string // of the error; "" is none
	}{
		{"dots", []item{{"../../evil", "x"}}, "leads out of the image"},
		{"dots inside", []item{{"a/../../evil", "x"}}, "leads out of the image"},
		{"hard link", []item{{"etc/x", "=> ../../etc/passwd"}}, "leads out of the image"},
		{"whiteout", []item{{"../.wh.evil", ""}}, "leads out of the image"},
		{"through a link", []item{{"etc/out", "-> " + outside}, {"etc/out/evil", "x"}}, ""},
		{"through dots in a link", []item{{"out", "-> ../../../../../../.." + outside}, {"out/evil", "x"}}, ""},
		{"whiteout through a link", []item{{"out", "-> " + filepath.Dir(outside)}, {"out/.wh." + filepath.Base(outside), ""}}, ""},
	} {
		_, dir, err := unpack(t, c.items)
		if (err != nil) != (c.says != "") || err != nil && (!strings.Contains(err.Error(), c.says) || report.ExitCode(err) != report.Failed) {
			t.Errorf("%s: %v, want %q", c.name, err, c.says)
		}
		if left, _ := os.ReadDir(outside); len(left) > 0 {
			t.Fatalf("%s: written to %s", c.name, outside)
		}
		if _, err := os.Stat(outside); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		_ = dir
	}
	img, dir, err := unpack(t, []item{{"dev/null", "device"}, {"etc/disk", "device"}, {"etc/lost", "=> etc/nowhere"}})
	if err != nil || len(img.Refused) != 2 || !strings.HasPrefix(img.Refused[0], "/etc/disk: a device") || !strings.Contains(img.Refused[1], "hard link to /etc/nowhere") {
		t.Errorf("%v, refused %q", err, img.Refused)
	}
	if _, err := os.Lstat(filepath.Join(dir, "etc/disk")); err == nil {
		t.Error("a device was made")
	}
}

// TestKept: what a probe reads is there, what it does not read takes no room.
func TestKept(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("x", bulk+1)
	site := "opt/venv/lib/python3.11/site-packages/"
	img, dir, err := unpack(t, []item{
		{site + "torch/lib/libtorch_cpu.so", big},
		{site + "other/model.bin", big},
		{site + "torch/nn.py", "x"},
		{site + "own.pth", "x"},
		{"opt/invar/env/0123456789ab/gen/1/ops/cpu/lib/libinvar_cpu.so", big},
		{"usr/lib/x86_64-linux-gnu/libc.so.6", "x"},
		{"models/weights.safetensors", big},
		{"usr/share/doc/x", "x"},
		{"home/me/.cache/pip/a", "12345"},
		{"home/me/.cache/pip/b/c", "123"},
		{"usr/bin/g++-12", "123"},
	}, []item{{"models/.wh.weights.safetensors", ""}})
	if err != nil {
		t.Fatal(err)
	}
	for p, want := range map[string]string{site + "torch/lib/libtorch_cpu.so": "hole", site + "other/model.bin": "", site + "torch/nn.py": "", site + "own.pth": "whole", "opt/invar/env/0123456789ab/gen/1/ops/cpu/lib/libinvar_cpu.so": "whole", "usr/lib/x86_64-linux-gnu/libc.so.6": "whole", "models/weights.safetensors": "", "usr/share/doc/x": ""} {
		got := ""
		var st unix.Stat_t
		if err := unix.Stat(filepath.Join(dir, p), &st); err == nil {
			if got = "whole"; st.Size > 0 && st.Blocks == 0 {
				got = "hole"
			}
		}
		if got != want {
			t.Errorf("%s: %q, want %q", p, got, want)
		}
	}
	if img.Hidden != bulk+1 {
		t.Errorf("%d bytes hidden, want the weights that the second layer removes", img.Hidden)
	}
	var found []string
	for _, l := range img.Leftover {
		b, err := json.Marshal([]any{l.Rule, l.Path, l.Files, l.Bytes, l.Layers})
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, string(b))
	}
	if got, want := strings.Join(found, " "), `["compilers","/usr/bin/g++-12",1,3,[1]] ["pip-cache","/home/me/.cache/pip",2,8,[1]]`; got != want {
		t.Errorf("leftovers %s\nwant      %s", got, want)
	}
}

func TestLeftoverRules(t *testing.T) {
	t.Parallel()
	rules, err := leftoverRules()
	if err != nil {
		t.Fatal(err)
	}
	for p, want := range map[string]string{
		"usr/bin/x86_64-linux-gnu-g++": "compilers", "usr/lib/gcc/x86_64-linux-gnu/12/cc1plus": "compilers", "usr/local/cuda-13.2/bin/nvcc": "compilers",
		"opt/v/lib/python3.11/site-packages/nvidia/cu13/bin/ptxas": "compilers", "opt/v/lib/python3.11/site-packages/triton/backends/nvidia/bin/ptxas": "",
		"usr/bin/c++filt": "", "usr/lib/gcc/x86_64-linux-gnu/12/libgcc_s.so": "",
		"home/me/.cache/uv/wheels/x": "pip-cache", "build-cache/uv/x": "build-cache", "var/lib/apt/lists/deb_Packages": "apt-lists", "var/lib/apt/lists/lock": "",
		"var/cache/dnf/x.solv": "apt-lists", "var/log/dpkg.log": "build-logs", "var/log/syslog": "", "root/.local/state/invar/log/2026-stage2.log": "build-logs",
		"opt/invar/work/a/x.o": "build-tree", "opt/invar/env/0123456789ab/gen/1/site/batch_invariant_ops/__pycache__/x.pyc": "pyc", "usr/lib/python3/dist-packages/__pycache__/x.pyc": "",
		"usr/local/bin/install-packages": "install-script",
	} {
		got := ""
		for _, r := range rules {
			if r.matches(p) {
				got += r.ID
			}
		}
		if got != want {
			t.Errorf("%s: %q, want %q", p, got, want)
		}
	}
}

// TestBadImages: what cannot be read is an error that says why, and its exit code.
func TestBadImages(t *testing.T) {
	t.Parallel()
	good := imageOf(t, []item{{"etc/x", strings.Repeat("x", 5000)}})
	dir := t.TempDir()
	file := func(name string, b []byte) string {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, b, 0o644); err != nil {
			t.Fatal(err)
		}
		return p
	}
	saved := filepath.Join(dir, "saved.tar")
	tag, err := name.NewTag("registry.example/x:1")
	if err != nil {
		t.Fatal(err)
	}
	if err := tarball.WriteToFile(saved, tag, good); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(saved)
	if err != nil {
		t.Fatal(err)
	}
	spoiled := layoutOf(t, good)
	m, err := good.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	blob := filepath.Join(spoiled, "blobs", "sha256", m.Layers[0].Digest.Hex)
	b, err := os.ReadFile(blob)
	if err != nil {
		t.Fatal(err)
	}
	b[600] ^= 1
	cut, gone, config := layoutOf(t, good), layoutOf(t, good), layoutOf(t, good)
	for p, content := range map[string][]byte{
		blob: b,
		filepath.Join(cut, "blobs", "sha256", m.Layers[0].Digest.Hex): b[:3000],
		filepath.Join(config, "blobs", "sha256", m.Config.Digest.Hex): []byte(`{"os":"linux","architecture":"amd64"}`),
	} {
		if err := os.WriteFile(p, content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(filepath.Join(gone, "blobs", "sha256", m.Layers[0].Digest.Hex)); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	closed := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }))
	t.Cleanup(closed.Close)
	for _, c := range []struct {
		name, ref, platform, says string
		code                      int
	}{
		{"no such file", filepath.Join(dir, "none.tar"), "", "no such file", report.Usage},
		{"bad name", "Not A Name", "", "Not A Name", report.Usage},
		{"bad platform", saved, "linux", "OS/ARCH", report.Usage},
		{"text", file("text", []byte("hello\n")), "", "is no image", report.Usage},
		{"empty file", file("empty", nil), "", "is no image", report.Usage},
		{"some tar", file("some.tar", tarOf(t, item{"a/b", "x"}, item{"c", "y"})), "", "but a, c", report.Usage},
		{"some folder", dir, "", "is no image", report.Usage},
		{"no index", file("broken.tar", tarOf(t, item{"index.json", "{"})), "", "index.json that is none", report.Usage},
		{"no manifest of docker", file("nodocker.tar", tarOf(t, item{"manifest.json", "{}"})), "", "manifest.json that is none", report.Usage},
		{"cut archive", file("cut.tar", whole[:len(whole)/2]), "", "unexpected EOF", report.Failed},
		{"cut layer", cut, "", "cut short", report.Failed},
		{"changed layer", spoiled, "", "not what its digest says", report.Failed},
		{"missing layer", gone, "", "no such file", report.Failed},
		{"changed configuration", config, "", "not what its digest says", report.Failed},
		{"other platform", saved, "linux/riscv64", "has no image for linux/riscv64; want linux/riscv64, got linux/amd64", report.Unmet},
		{"several", layoutOf(t, good, imageOf(t, []item{{"etc/y", "y"}})), "linux/amd64", "one image, got a, b", report.Usage},
		{"no such tag", layoutOf(t, good) + ":z", "", "holds no image z", report.Usage},
		{"artifact", layoutOf(t, mutate.ConfigMediaType(empty.Image, "application/vnd.cncf.helm.config.v1+json")), "", "artifact", report.Usage},
		{"not in the registry", strings.TrimPrefix(server.URL, "http://") + "/none:1", "", "the registry has no image", report.Unmet},
		{"registry refuses", strings.TrimPrefix(closed.URL, "http://") + "/none:1", "", "the registry refuses", report.Unmet},
		{"registry down", "127.0.0.1:1/none:1", "", "does not answer", report.Unmet},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			to := t.TempDir()
			img, err := Open(t.Context(), Options{Ref: c.ref, Platform: c.platform})
			if err == nil {
				err = img.Unpack(t.Context(), to)
				img.Close()
			}
			if report.ExitCode(err) != c.code || err == nil || !strings.Contains(text(err), c.says) {
				t.Errorf("%s (exit code %d), want %q (%d)", text(err), report.ExitCode(err), c.says, c.code)
			}
			if p, ok := errors.AsType[*report.Problem](err); !ok || p.Hint == "" && c.code != report.Usage {
				t.Errorf("no way out: %v", err)
			}
		})
	}
}

func text(err error) string {
	if err == nil {
		return "no error"
	}
	return err.Error()
}

// TestIndexes chooses in what BuildKit writes: an index in index.json, with an
// attestation beside the images and one image for newer CPUs.
func TestIndexes(t *testing.T) {
	t.Parallel()
	amd, arm, newer, proof := imageOf(t, []item{{"etc/a", "amd64"}}), imageOf(t, []item{{"etc/a", "arm64"}}), imageOf(t, []item{{"etc/a", "v3"}}), imageOf(t, []item{{"x", "proof"}})
	index := mutate.AppendManifests(
		empty.Index,
		mutate.IndexAddendum{Add: arm, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: "arm64", Variant: "v8"}}},
		mutate.IndexAddendum{Add: newer, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: "amd64", Variant: "v3"}}},
		mutate.IndexAddendum{Add: amd, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: "amd64"}}},
		mutate.IndexAddendum{Add: proof, Descriptor: v1.Descriptor{
			Platform: &v1.Platform{OS: "unknown", Architecture: "unknown"}, Annotations: map[string]string{"vnd.docker.reference.type": "attestation-manifest"},
		}},
	)
	dir := layoutOf(t)
	l, err := layout.FromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.AppendIndex(index); err != nil {
		t.Fatal(err)
	}
	for platform, want := range map[string]v1.Image{"linux/amd64": amd, "linux/arm64": arm, "linux/amd64/v3": newer} {
		img, err := Open(t.Context(), Options{Ref: dir, Platform: platform})
		if err != nil {
			t.Errorf("%s: %v", platform, err)
			continue
		}
		if d, err := want.Digest(); err != nil || img.Digest != d.String() {
			t.Errorf("%s: %s, want %s (%v)", platform, img.Digest, d, err)
		}
		img.Close()
	}
	if _, err := Open(t.Context(), Options{Ref: dir, Platform: "linux/riscv64"}); report.ExitCode(err) != report.Unmet || strings.Contains(err.Error(), "unknown") {
		t.Errorf("%v", err)
	}
}

// TestOldDocker is what docker save wrote before it knew OCI: a folder for each
// layer, and a link where a layer is that of another image.
func TestOldDocker(t *testing.T) {
	t.Parallel()
	one, two := tarOf(t, item{"etc/a", "1"}), tarOf(t, item{"etc/b", "2"})
	var ids []string
	for _, b := range [][]byte{one, two, one} {
		h, _, err := v1.SHA256(bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, h.String())
	}
	config, err := json.Marshal(map[string]any{"os": "linux", "architecture": "amd64", "rootfs": map[string]any{"type": "layers", "diff_ids": ids}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "old.tar")
	if err := os.WriteFile(file, tarOf(
		t,
		item{"1/", ""},
		item{"1/layer.tar", string(one)},
		item{"2/layer.tar", string(two)},
		item{"3/layer.tar", "-> ../1/layer.tar"},
		item{"config.json", string(config)},
		item{"manifest.json", `[{"Config":"config.json","RepoTags":["x:1"],"Layers":["1/layer.tar","2/layer.tar","3/layer.tar"]}]`},
	), 0o644); err != nil {
		t.Fatal(err)
	}
	img, err := Open(t.Context(), Options{Ref: file})
	if err != nil {
		t.Fatal(err)
	}
	defer img.Close()
	dir := t.TempDir()
	if err := img.Unpack(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{"etc/a", "etc/b"} {
		if _, err := os.Stat(filepath.Join(dir, p)); err != nil {
			t.Error(err)
		}
	}
	if img.Kind != "docker archive" || img.Digest != "" || len(img.Layers) != 3 || img.Platform != "linux/amd64" {
		t.Errorf("%+v", img)
	}
}

// TestCompression undoes what layers are compressed with, whatever the media type says.
func TestCompression(t *testing.T) {
	t.Parallel()
	plain := tarOf(t, item{"etc/a", "1"})
	var zst, gz bytes.Buffer
	z, err := zstd.NewWriter(&zst)
	if err != nil {
		t.Fatal(err)
	}
	g := gzip.NewWriter(&gz)
	for _, w := range []io.WriteCloser{z, g} {
		if _, err := w.Write(plain); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	diffID, _, err := v1.SHA256(bytes.NewReader(plain))
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{"none": plain, "zstd": zst.Bytes(), "gzip": gz.Bytes()} {
		digest, _, err := v1.SHA256(bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		l := layer{digest: digest, diffID: diffID, open: func(context.Context) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b)), nil }}
		var names []string
		if err := l.each(t.Context(), report.Discard.Start("", "", 0), func(h *tar.Header, _ io.Reader) error {
			names = append(names, h.Name)
			return nil
		}); err != nil || len(names) != 1 {
			t.Errorf("%s: %v, %v", name, names, err)
		}
		l.diffID.Hex = strings.Repeat("0", 64)
		if err := l.each(t.Context(), report.Discard.Start("", "", 0), func(*tar.Header, io.Reader) error { return nil }); err == nil {
			t.Errorf("%s: another content was taken", name)
		}
	}
}

// TestFull has a disk that is too small, from the start and in the middle.
func TestFull(t *testing.T) {
	t.Parallel()
	img, err := Open(t.Context(), Options{Ref: layoutOf(t, imageOf(t, []item{{"etc/x", strings.Repeat("x", 5000)}}))})
	if err != nil {
		t.Fatal(err)
	}
	defer img.Close()
	img.Layers[0].Bytes = 1 << 60
	if err := img.Unpack(t.Context(), t.TempDir()); report.ExitCode(err) != report.Unmet || !strings.Contains(text(err), "not enough room") {
		t.Errorf("at the start: %v", err)
	}
	r := &room{dir: "x", free: 10}
	if _, err := io.Copy(r.writer(io.Discard), strings.NewReader("12345678901")); report.ExitCode(err) != report.Unmet {
		t.Errorf("in the middle: %v", err)
	}
	if err := explain("layer: %w", &os.PathError{Op: "write", Path: "x", Err: unix.ENOSPC}); report.ExitCode(err) != report.Unmet || !strings.Contains(err.(*report.Problem).Hint, "TMPDIR") { //nolint:errorlint // explain gives this one
		t.Errorf("of the system: %v", err)
	}
}

func FuzzSafeName(f *testing.F) {
	for _, s := range []string{"a/b", "../x", "/etc/passwd", "./a/./b", "a//b", "..", "a/..", "\x00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, err := safeName(s)
		if err == nil && (strings.HasPrefix(p, "/") || p == ".." || strings.HasPrefix(p, "../") || strings.Contains(p, "/../") || p != "" && !filepath.IsLocal(p)) {
			t.Errorf("%q became %q", s, p)
		}
	})
}

func FuzzEntry(f *testing.F) {
	f.Add(tarOf(f, item{"a/", ""}, item{"a/b", "x"}, item{"a/.wh.b", ""}, item{"l", "-> /etc"}, item{"l/x", "y"}))
	f.Fuzz(func(t *testing.T, b []byte) {
		dir := t.TempDir()
		inside := filepath.Join(dir, "root")
		if err := os.Mkdir(inside, 0o755); err != nil {
			t.Fatal(err)
		}
		img := &Image{done: report.Discard, Layers: []Layer{{}}, layers: []layer{{open: func(context.Context) (io.ReadCloser, error) {
			return io.NopCloser(bytes.NewReader(b)), nil
		}}}}
		_ = img.Unpack(t.Context(), inside)
		if left, _ := os.ReadDir(dir); len(left) != 1 {
			t.Errorf("written beside the folder: %v", left)
		}
	})
}
