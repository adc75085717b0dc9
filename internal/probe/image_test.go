package probe

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"log"
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
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/invar-ops/invar/internal/imagefs"
	"github.com/invar-ops/invar/internal/install"
	"github.com/invar-ops/invar/internal/report"
)

// layerOf is a layer with everything below dir, owned by root.
func layerOf(t testing.TB, dir string) v1.Layer {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	if err := w.AddFS(os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	l, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b.Bytes())), nil }, tarball.WithCompressionLevel(gzip.BestSpeed))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// goodConfig is what invar image build leaves in an image of this root.
func goodConfig(t testing.TB, dir string) v1.Config {
	t.Helper()
	var r install.Receipt
	if err := json.Unmarshal([]byte(read(t, only(t, dir, generation+"/receipt.json"))), &r); err != nil {
		t.Fatal(err)
	}
	return v1.Config{
		Env: []string{"PATH=/usr/bin:/bin", "INVAR_HOME=/opt/invar"}, User: "65532:65532",
		Healthcheck: &v1.HealthConfig{Test: []string{"CMD", "invar", "probe", "--level", "1"}},
		Labels: map[string]string{
			labelPrefix + "target": "cpu", labelPrefix + "contract": r.Contract, labelPrefix + "torch": r.Python.Torch,
			labelPrefix + "run-package": r.RunPackage.Name, labelPrefix + "run-package.digest": "sha256:" + r.RunPackage.SHA256,
			labelPrefix + "wheel": r.Wheel.Name, labelPrefix + "wheel.digest": "sha256:" + r.Wheel.SHA256,
		},
	}
}

func imageOf(t testing.TB, c v1.Config, arch string, layers ...v1.Layer) v1.Image {
	t.Helper()
	img := mutate.MediaType(mutate.ConfigMediaType(empty.Image, types.OCIConfigJSON), types.OCIManifestSchema1)
	for _, l := range layers {
		var err error
		if img, err = mutate.Append(img, mutate.Addendum{Layer: l, History: v1.History{CreatedBy: "COPY / /"}}); err != nil {
			t.Fatal(err)
		}
	}
	f, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	f = f.DeepCopy()
	f.OS, f.Architecture, f.Config = "linux", arch, c
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
	for _, i := range images {
		if err := l.AppendImage(i); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func tarOf(t testing.TB, dir string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "image.tar")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	w := tar.NewWriter(f)
	if err := errors.Join(w.AddFS(os.DirFS(dir)), w.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	return file
}

// serve is a registry on this machine, and the name of a repository in it.
func serve(t testing.TB) string {
	t.Helper()
	s := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://") + "/invar/test"
}

func probeImage(t testing.TB, ref, platform string) (Result, error) {
	t.Helper()
	scratch := t.TempDir()
	res, err := RunImage(t.Context(), imagefs.Options{Ref: ref, Platform: platform, Scratch: scratch}, Options{})
	if left, _ := os.ReadDir(scratch); len(left) > 0 {
		t.Errorf("left in the temporary folder: %v", left)
	}
	return res, err
}

// TestImage takes one image by every way in which images come.
func TestImage(t *testing.T) {
	t.Parallel()
	dir := newRoot(t)
	img := imageOf(t, goodConfig(t, dir), goArch(), layerOf(t, dir))
	oci := layoutOf(t, img)
	saved := filepath.Join(t.TempDir(), "saved.tar")
	tag, err := name.NewTag("registry.example/invar:1")
	if err != nil {
		t.Fatal(err)
	}
	if err := tarball.WriteToFile(saved, tag, img); err != nil {
		t.Fatal(err)
	}
	repo := serve(t)
	ref, err := name.ParseReference(repo + ":good")
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(ref, img); err != nil {
		t.Fatal(err)
	}
	archive := tarOf(t, oci)
	zipped := archive + ".gz"
	pack(t, archive, zipped)
	for _, c := range []struct{ kind, ref string }{
		{"OCI layout", oci},
		{"OCI layout", "oci:" + oci},
		{"OCI archive", archive},
		{"OCI archive", zipped},
		{"docker archive", saved},
		{"docker archive", saved + ":registry.example/invar:1"},
		{"registry", repo + ":good"},
	} {
		res, err := probeImage(t, c.ref, "")
		if err != nil {
			t.Errorf("%s %s: %v\n%+v", c.kind, c.ref, err, res.Checks)
			continue
		}
		if res.Image == nil || res.Image.Kind != c.kind || res.Levels[0].Status != report.Pass || res.Levels[0].Level != OfImage || res.Proved != 1 {
			t.Errorf("%s %s: %+v, levels %+v", c.kind, c.ref, res.Image, res.Levels)
		}
		found(t, res, OfImage, "labels", report.Pass, "7 agree")
		valid(t, res, err)
	}
}

func pack(t testing.TB, from, to string) {
	t.Helper()
	f, err := os.Create(to)
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewWriterLevel(f, gzip.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.WriteString(z, read(t, from))
	if err := errors.Join(err, z.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

func goArch() string {
	for g, a := range goArches {
		if a == arch() {
			return g
		}
	}
	return ""
}

// TestImageSays is about what an image says of itself: each change of the
// configuration or of the files makes one check fail.
func TestImageSays(t *testing.T) {
	t.Parallel()
	dir := newRoot(t)
	base := layerOf(t, dir)
	for _, c := range []struct {
		name, check, text string
		change            func(*v1.Config)
		arch              string
		files             map[string]string // of one more layer
		modes             map[string]fs.FileMode
		history           string // of one more layer
		status            report.Status
	}{
		{name: "setting left", check: "VLLM_BATCH_INVARIANT", text: "VLLM_BATCH_INVARIANT=1", change: func(c *v1.Config) { c.Env = append(c.Env, "VLLM_BATCH_INVARIANT=1") }},
		{name: "setting off", check: "VLLM_BATCH_INVARIANT", text: "not set", status: report.Pass, change: func(c *v1.Config) { c.Env = append(c.Env, "VLLM_BATCH_INVARIANT=0") }},
		{name: "other home", check: "INVAR_HOME", text: "/srv/invar", change: func(c *v1.Config) { c.Env[1] = "INVAR_HOME=/srv/invar" }},
		{name: "no home and no root", check: "INVAR_HOME", text: "unset", change: func(c *v1.Config) { c.Env = c.Env[:1] }},
		{name: "no home for root", check: "INVAR_HOME", text: "unset", status: report.Pass, change: func(c *v1.Config) { c.Env, c.User = c.Env[:1], "" }},
		{name: "password of an index", check: "credentials", text: `ENV PIP_INDEX_URL: an address with the password of "me"`, change: func(c *v1.Config) {
			c.Env = append(c.Env, "PIP_INDEX_URL=https://me:hunter2@pypi.example/simple")
		}},
		{name: "token", check: "credentials", text: "ENV HF_TOKEN: a value of 6 characters", change: func(c *v1.Config) { c.Env = append(c.Env, "HF_TOKEN=abcdef") }},
		{name: "token as label", check: "credentials", text: "LABEL source", change: func(c *v1.Config) { c.Labels["source"] = "https://ghp_0123456789abcdefABCDEF@git.example/x" }},
		{name: "history", check: "credentials", text: `history, line 2: PIP_INDEX_URL: an address with the password of "me"`, history: "RUN |1 PIP_INDEX_URL=https://me:hunter2@pypi.example/simple /bin/sh -c pip install x"},
		{name: "history with variables", check: "credentials", text: "none", status: report.Pass, history: "RUN git clone https://$USER:$TOKEN@git.example/x && curl https://me:***@x.example"},
		{name: "no secret", check: "credentials", text: "none", status: report.Pass, change: func(c *v1.Config) {
			c.Env = append(c.Env, "PIP_INDEX_URL=https://pypi.example/simple", "TOKENIZERS_PARALLELISM=false", "SSH_KEY_FILE=/run/key")
		}},
		{name: "pip.conf", check: "credentials", text: "/etc/pip.conf: an address", files: map[string]string{"etc/pip.conf": "[global]\nindex-url = https://me:hunter2@pypi.example/simple\n"}},
		{name: "digest of another build", check: "labels", text: `run-package.digest is "sha256:00"`, change: func(c *v1.Config) { c.Labels[labelPrefix+"run-package.digest"] = "sha256:00" }},
		{name: "label gone", check: "labels", text: "no " + labelPrefix + "wheel.digest", change: func(c *v1.Config) { delete(c.Labels, labelPrefix+"wheel.digest") }},
		{name: "no labels", check: "labels", text: "not made by invar", status: report.Skip, change: func(c *v1.Config) { c.Labels = nil }},
		{name: "no health check", check: "health check", text: "none", change: func(c *v1.Config) { c.Healthcheck = nil }},
		{name: "user without an entry", check: "user", text: "who is not in /etc/passwd", change: func(c *v1.Config) { c.User = "nobody-here" }},
		{name: "user of passwd", check: "user", text: "me", status: report.Pass, change: func(c *v1.Config) { c.User = "me" }, files: map[string]string{"etc/passwd": "me:x:7:7::/:/bin/sh\n"}},
		{name: "unreadable for the user", check: "user", text: "/opt/venv/lib/python3.11/site-packages/invar.pth", files: map[string]string{strings.TrimPrefix(rootSite, "/") + "/" + install.HookName: read(t, filepath.Join(dir, rootSite, install.HookName))}, modes: map[string]fs.FileMode{install.HookName: 0o600}},
		{name: "other platform than its programs", check: "platform", text: "programs for " + arch(), arch: other(goArch())},
		{name: "unknown platform", check: "platform", text: "linux/s390x", arch: "s390x"},
		{name: "leftovers", check: "leftovers", text: "caches of pip, uv and conda: 1 kB, 1 file in /home/me/.cache/pip/http/a", files: map[string]string{"home/me/.cache/pip/http/a": "x"}},
		{name: "leftovers of others", check: "leftovers", text: "its owner's choice", status: report.Skip, change: func(c *v1.Config) { c.Labels = nil }, files: map[string]string{"usr/bin/g++-12": "x", "build-cache/x": "y"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if c.status == "" {
				c.status = report.Fail
			}
			if c.arch == "" {
				c.arch = goArch()
			}
			config := goodConfig(t, dir)
			if c.change != nil {
				c.change(&config)
			}
			layers := []v1.Layer{base}
			if len(c.files) > 0 {
				more := t.TempDir()
				for p, text := range c.files {
					write(t, filepath.Join(more, p), text)
					if m, ok := c.modes[filepath.Base(p)]; ok {
						if err := os.Chmod(filepath.Join(more, p), m); err != nil {
							t.Fatal(err)
						}
					}
				}
				layers = append(layers, layerOf(t, more))
			}
			img := imageOf(t, config, c.arch, layers...)
			if c.history != "" {
				var err error
				if img, err = mutate.Append(img, mutate.Addendum{Layer: layerOf(t, t.TempDir()), History: v1.History{CreatedBy: c.history}}); err != nil {
					t.Fatal(err)
				}
			}
			res, err := probeImage(t, layoutOf(t, img), "")
			if code := map[report.Status]int{report.Fail: report.CheckFailed}[c.status]; report.ExitCode(err) != code {
				t.Errorf("exit code %d (%v), want %d", report.ExitCode(err), err, code)
			}
			found(t, res, OfImage, c.check, c.status, c.text)
			var b bytes.Buffer
			if err := report.WriteJSON(&b, "probe", res, err); err != nil || strings.Contains(b.String(), "hunter2") && c.name != "setting left" {
				t.Errorf("the password is printed (%v):\n%s", err, b.String())
			}
		})
	}
}

func other(arch string) string {
	return map[string]string{"amd64": "arm64", "arm64": "amd64"}[arch]
}

// TestImagePlatforms chooses among the images of an index.
func TestImagePlatforms(t *testing.T) {
	t.Parallel()
	dir := newRoot(t)
	here := imageOf(t, goodConfig(t, dir), goArch(), layerOf(t, dir))
	there := imageOf(t, goodConfig(t, dir), other(goArch()), layerOf(t, t.TempDir()))
	var index v1.ImageIndex = empty.Index
	for _, i := range []v1.Image{there, here} {
		f, err := i.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: i, Descriptor: v1.Descriptor{Platform: f.Platform()}})
	}
	ref, err := name.ParseReference(serve(t) + ":several")
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.WriteIndex(ref, index); err != nil {
		t.Fatal(err)
	}
	if res, err := probeImage(t, ref.String(), ""); err != nil || res.Image.Platform != "linux/"+goArch() {
		t.Errorf("without --platform: %v, %+v", err, res.Image)
	}
	if _, err := probeImage(t, ref.String(), "linux/"+other(goArch())); report.ExitCode(err) != report.CheckFailed || !strings.Contains(err.Error(), "no operators") {
		t.Errorf("the other one: %v", err)
	}
	if _, err := probeImage(t, ref.String(), "linux/s390x"); report.ExitCode(err) != report.Unmet || !strings.Contains(err.Error(), "linux/arm64") {
		t.Errorf("one that is not there: %v", err)
	}
}

// TestImageInterrupted leaves nothing behind.
func TestImageInterrupted(t *testing.T) {
	t.Parallel()
	dir := newRoot(t)
	oci := layoutOf(t, imageOf(t, goodConfig(t, dir), goArch(), layerOf(t, dir)))
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("stopped")
	scratch := t.TempDir()
	_, err := RunImage(ctx, imagefs.Options{Ref: oci, Scratch: scratch, Progress: stopping{report.Discard, func() { cancel(stop) }}}, Options{})
	if !errors.Is(err, stop) {
		t.Errorf("%v, want the cause of the end", err)
	}
	if left, _ := os.ReadDir(scratch); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// stopping ends the context in the middle of the first layer.
type stopping struct {
	report.Progress
	stop func()
}

func (s stopping) Start(stage, name string, total int64) report.Step {
	return stoppingStep{s.Progress.Start(stage, name, total), s.stop}
}

type stoppingStep struct {
	report.Step
	stop func()
}

func (s stoppingStep) Add(int64) { s.stop() }
