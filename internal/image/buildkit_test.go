package image

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"golang.org/x/sys/unix"

	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/run"
	"github.com/invar-ops/invar/internal/testkit"
)

// A kit is a running buildkitd and a registry beside it, both on the loopback.
type kit struct {
	env      []string
	registry string // "127.0.0.1:41231"
	debian   string // base images in that registry
	busybox  string
}

// startKit starts BuildKit, and stops it with the test.
func startKit(t *testing.T) kit {
	t.Helper()
	stores := needBuildah(t)
	skip := t.Skipf
	if os.Getenv("INVAR_CI") == "1" {
		skip = t.Fatalf
	}
	bin := filepath.Join(testkit.Cache(), "bin")
	if _, err := os.Stat(filepath.Join(bin, "buildkitd")); err != nil || os.Getuid() != 0 {
		skip("needs root and buildkitd (%v): run .ci/setup", err)
	}
	root := t.TempDir()
	sock := "unix://" + filepath.Join(root, "sock")
	env := run.Setenv(os.Environ(), "PATH", bin+":"+os.Getenv("PATH"))
	env = run.Setenv(env, "BUILDKIT_HOST", sock)
	said := filepath.Join(root, "log")
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = run.System{}.Run(ctx, run.Cmd{Argv: []string{
			"buildkitd", "--root", filepath.Join(root, "root"), "--addr", sock, "--oci-worker-net", "host",
			"--oci-worker-gc=false", "--containerd-worker=false",
		}, Env: env, Log: said})
	}()
	t.Cleanup(func() { stop(); <-ended })
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(200 * time.Millisecond) {
		_, err := FindBuilder(t.Context(), run.System{}, env, "buildctl")
		if err == nil {
			break
		}
		if time.Now().After(deadline) {
			b, _ := os.ReadFile(said)
			t.Fatalf("buildkitd does not answer: %s\n%s", full(err), b)
		}
	}
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0)), registry.WithBlobHandler(registry.NewDiskBlobHandler(t.TempDir()))))
	t.Cleanup(server.Close)
	k := kit{env: env, registry: strings.TrimPrefix(server.URL, "http://")}
	k.debian, k.busybox = k.registry+"/debian:bookworm", k.registry+"/busybox:1"
	buildah(t, stores, "push", "--quiet", "--tls-verify=false", "--format", "oci", bareBase, "docker://"+k.debian)
	pushBusybox(t, k.busybox)
	return k
}

// pushBusybox makes a small base: a shell, and no package manager.
func pushBusybox(t *testing.T, as string) {
	t.Helper()
	files := map[string][]byte{"etc/os-release": []byte("ID=other\n")}
	for to, from := range map[string]string{
		"bin/sh": "/bin/busybox", "lib64/ld-linux-x86-64.so.2": "/lib64/ld-linux-x86-64.so.2",
		"lib/x86_64-linux-gnu/libc.so.6": "/lib/x86_64-linux-gnu/libc.so.6", "lib/x86_64-linux-gnu/libresolv.so.2": "/lib/x86_64-linux-gnu/libresolv.so.2",
	} {
		b, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		files[to] = b
	}
	img, err := mutate.ConfigFile(empty.Image, &v1.ConfigFile{OS: "linux", Architecture: "amd64", RootFS: v1.RootFS{Type: "layers"}})
	if err != nil {
		t.Fatal(err)
	}
	if img, err = mutate.AppendLayers(img, layerOf(t, files)); err != nil {
		t.Fatal(err)
	}
	ref, err := name.NewTag(as)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(ref, img); err != nil {
		t.Fatal(err)
	}
}

func (k kit) request(t *testing.T, binary, family string) Request {
	return Request{
		Options: Options{Families: []string{family}, Repository: k.registry + "/me/invar", Version: "1.0.0"},
		Builder: "buildctl", Binary: binary, Release: "1.0.0", LogDir: t.TempDir(), Platform: "linux/amd64",
		Output: filepath.Join(t.TempDir(), "image.tar"), Runner: run.System{}, Env: k.env, Progress: report.Discard,
	}
}

// TestBuildKit drives a real buildkitd by buildctl.
func TestBuildKit(t *testing.T) {
	k := startKit(t)
	bin := static(t, "amd64")
	t.Run("binary", func(t *testing.T) { testKitBinary(t, k, bin) })
	t.Run("pushed", func(t *testing.T) { testKitPush(t, k, bin) })
	t.Run("fails", func(t *testing.T) { testKitFails(t, k, bin) })
	t.Run("disk full", func(t *testing.T) { testKitDiskFull(t, k, bin) })
	t.Run("interrupt", func(t *testing.T) { testKitInterrupt(t, k, bin) })
	t.Run("reproducible", func(t *testing.T) {
		reproducible(t, k.request(t, bin, "binary"), k.debian, func(t *testing.T) {
			cmd := exec.Command(filepath.Join(testkit.Cache(), "bin", "buildctl"), "prune", "--all")
			cmd.Env = k.env
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
		})
	})
}

func testKitBinary(t *testing.T, k kit, bin string) {
	req := k.request(t, bin, "binary")
	shown := &listed{}
	req.Progress = shown
	res, err := Build(t.Context(), req)
	if err != nil {
		t.Fatal(full(err))
	}
	img := archived(t, res.Output)
	if d, err := img.Digest(); err != nil || d.String() != res.Digest {
		t.Errorf("the archive holds %v (%v), the result says %s", d, err, res.Digest)
	}
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.Config.User != "65532:65532" || config.Config.Labels[labelPrefix+"version"] != "1.0.0" || config.Architecture != "amd64" {
		t.Errorf("the configuration is %+v", config.Config)
	}
	want, err := os.ReadFile(bin)
	if err != nil {
		t.Fatal(err)
	}
	if files := contents(t, img); len(files) != 1 || !bytes.Equal(files["invar"], want) {
		t.Errorf("the image holds %d files, want invar alone, as it was given", len(files))
	}
	if log, err := os.ReadFile(res.Log); err != nil || !strings.Contains(string(log), `RUN ["/invar", "version"]`) {
		t.Errorf("the log does not hold the steps: %v", err)
	}
	if !slices.ContainsFunc(shown.all(), func(l string) bool { return strings.HasSuffix(l, `RUN ["/invar", "version"] done`) }) {
		t.Errorf("progress was %q", shown.all())
	}
}

func testKitPush(t *testing.T, k kit, bin string) {
	req := k.request(t, bin, "binary")
	req.Base, req.Output, req.Push = k.busybox, "", true
	res, err := Build(t.Context(), req)
	if err != nil {
		t.Fatal(full(err))
	}
	if !strings.HasPrefix(res.From, k.registry+"/busybox@sha256:") {
		t.Errorf("the base is %s, want it by digest", res.From)
	}
	for _, tag := range res.Tags {
		ref, err := name.ParseReference(tag)
		if err != nil {
			t.Fatal(err)
		}
		if d, err := remote.Head(ref); err != nil || d.Digest.String() != res.Digest {
			t.Errorf("%s: %v (%v), the result says %s", tag, d, err, res.Digest)
		}
	}
	if len(res.Tags) != 1 {
		t.Errorf("tags %v, want one", res.Tags)
	}
	// A registry that is gone when the image is built.
	req.Repository, req.Base = "127.0.0.1:1/me/invar", scratch
	res, err = Build(t.Context(), req)
	fails(t, res, err, report.BuildFailed)
	if !strings.Contains(full(err), "built and not pushed") {
		t.Errorf("registry down: %s", full(err))
	}
}

// testKitFails builds the CPU image on bases that it cannot come from.
func testKitFails(t *testing.T, k kit, bin string) {
	for name, c := range map[string]struct {
		change func(*Request)
		says   string
	}{
		"no packages":    {func(r *Request) { r.Args = map[string]string{"APTMIRROR": "127.0.0.1:1"} }, "127.0.0.1"},
		"no apt, no dnf": {func(r *Request) { r.Base = k.busybox }, "neither apt-get nor dnf"},
	} {
		req := k.request(t, bin, "cpu")
		req.Base = k.debian
		c.change(&req)
		res, err := Build(t.Context(), req)
		fails(t, res, err, report.BuildFailed)
		if !strings.Contains(full(err), c.says) {
			t.Errorf("%s: want %q:\n%s", name, c.says, full(err))
		}
		nothing(t, filepath.Dir(req.Output))
	}
}

// testKitDiskFull ends the export, and before it the copy of invar, on a file
// system that has no room for them.
func testKitDiskFull(t *testing.T, k kit, bin string) {
	info, err := os.Stat(bin)
	if err != nil {
		t.Fatal(err)
	}
	for _, room := range []int64{4 << 20, info.Size() + 4<<20} {
		small := t.TempDir()
		if err := unix.Mount("tmpfs", small, "tmpfs", 0, "size="+mebibytes(room)); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = unix.Unmount(small, 0) }()
		req := k.request(t, bin, "binary")
		req.Output = filepath.Join(small, "image.tar")
		res, err := Build(t.Context(), req)
		fails(t, res, err, report.BuildFailed)
		if !strings.Contains(full(err), "no space left") {
			t.Errorf("disk full: %s", full(err))
		}
		nothing(t, small)
	}
}

func testKitInterrupt(t *testing.T, k kit, bin string) {
	req := k.request(t, bin, "cpu")
	req.Base = k.debian
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	if _, err := Build(ctx, req); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("an interrupted build ends with %v", err)
	}
	nothing(t, filepath.Dir(req.Output))
}

// nothing checks that a build left no file behind, not even a hidden one.
func nothing(t *testing.T, dir string) {
	t.Helper()
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v is left in the output's folder (%v)", left, err)
	}
}

// archived is the image of an OCI archive.
func archived(t *testing.T, file string) v1.Image {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "oci")
	if err := untar(file, dir); err != nil {
		t.Fatal(err)
	}
	img, err := onlyImage(dir, "linux/amd64")
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// contents are the regular files of an image.
func contents(t *testing.T, img v1.Image) map[string][]byte {
	t.Helper()
	stream := mutate.Extract(img)
	defer func() { _ = stream.Close() }()
	out := map[string][]byte{}
	for r := tar.NewReader(stream); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg {
			if out[strings.TrimPrefix(h.Name, "/")], err = io.ReadAll(r); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// listed is a progress that remembers its lines.
type listed struct {
	mu    sync.Mutex
	lines []string
}

type listedStep struct {
	to   *listed
	name string
}

func (l *listed) add(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, line)
}

func (l *listed) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.lines)
}

func (l *listed) Start(_, name string, _ int64) report.Step { return listedStep{l, name} }
func (l *listed) Note(text string)                          { l.add(text) }
func (s listedStep) Add(int64)                              {}
func (s listedStep) Expect(int64)                           {}
func (s listedStep) Done(string)                            { s.to.add(s.name + " done") }
func (s listedStep) Skip(string)                            { s.to.add(s.name + " skipped") }
func (s listedStep) Fail(error)                             { s.to.add(s.name + " failed") }
