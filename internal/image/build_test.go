package image

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"golang.org/x/sys/unix"

	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/run"
	"github.com/invar-ops/invar/internal/testkit"
)

// Images that .ci/setup makes: a bare Debian, and one with Python and torch.
const (
	bareBase  = "localhost/debian:bookworm"
	torchBase = "localhost/debian-torch:2.15"
)

// needBuildah is the environment of a buildah with a store of its own, which
// sees the base images: what a test leaves can be told, and hurts nobody.
func needBuildah(t *testing.T) []string {
	t.Helper()
	if testing.Short() {
		t.Skip("short: builds images")
	}
	skip := t.Skipf
	if os.Getenv("INVAR_CI") == "1" {
		skip = t.Fatalf
	}
	shared := filepath.Join(testkit.Cache(), "images")
	if _, err := os.Stat(filepath.Join(shared, "storage.conf")); err != nil || os.Getuid() != 0 {
		skip("needs root and the base images (%v): run .ci/setup", err)
	}
	dir := t.TempDir()
	conf := filepath.Join(dir, "storage.conf")
	text := fmt.Sprintf("[storage]\ndriver = \"overlay\"\ngraphroot = %q\nrunroot = %q\n[storage.options]\nadditionalimagestores = [%q]\n",
		filepath.Join(dir, "store"), filepath.Join(dir, "run"), shared)
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	env := append(os.Environ(), "CONTAINERS_STORAGE_CONF="+conf, "BUILDAH_ISOLATION=chroot")
	if _, err := FindBuilder(t.Context(), run.System{}, env, "buildah"); err != nil {
		skip("needs buildah: %v", err)
	}
	// The driver mounts its folder on itself, and a failed test leaves containers.
	t.Cleanup(func() {
		cmd := exec.Command("buildah", "rm", "--all")
		cmd.Env = env
		_ = cmd.Run()
		_ = unix.Unmount(filepath.Join(dir, "store", "overlay"), unix.MNT_DETACH)
	})
	return env
}

// static builds the program as it goes into images.
func static(t *testing.T, arch string) string {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "invar")
	cmd := exec.Command("go", "build", "-trimpath", "-o", bin, "../../cmd/invar")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOARCH="+arch)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return bin
}

func request(t *testing.T, env []string, binary string) Request {
	return Request{
		Options: Options{
			Families: []string{"cpu"}, OS: "debian12", Repository: "localhost/invar-test-" + strings.ToLower(filepath.Base(t.TempDir())),
			Version: "1.0.0", Base: torchBase, Args: map[string]string{"INVAR_PYTHON": "/opt/torch"},
		},
		Builder: "buildah", Platform: "linux/amd64", Binary: binary, Release: "1.0.0", LogDir: t.TempDir(),
		Runner: run.System{}, Env: env, Progress: report.Discard,
	}
}

func buildah(t *testing.T, env []string, args ...string) string {
	t.Helper()
	cmd := exec.Command("buildah", args...)
	cmd.Env = env
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("buildah %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// TestBuild builds the CPU image with a real torch: both stages and the probe
// to level 7 run inside the build. Then the same base and matrix in ways that
// must fail: each leaves no tag, no file and no container.
func TestBuild(t *testing.T) {
	env := needBuildah(t)
	bin := static(t, "amd64")
	t.Run("cpu", func(t *testing.T) { testCPU(t, env, bin) })
	t.Run("base from a registry", func(t *testing.T) { testFromRegistry(t, env, bin) })
	before := buildah(t, env, "images", "--quiet", "--no-trunc")
	t.Run("no packages", func(t *testing.T) {
		req := request(t, env, bin)
		req.Base, req.Args = bareBase, map[string]string{"APTMIRROR": "127.0.0.1:1"}
		res, err := Build(t.Context(), req)
		fails(t, res, err, report.BuildFailed)
	})
	t.Run("interrupt", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 8*time.Second)
		defer cancel()
		if _, err := Build(ctx, request(t, env, bin)); err == nil {
			t.Error("an interrupted build has no error")
		}
		if left := buildah(t, env, "containers", "--quiet"); left != "" {
			t.Errorf("working containers are left: %s", left)
		}
	})
	t.Run("disk full", func(t *testing.T) { testDiskFull(t, env, bin) })
	t.Run("registry down", func(t *testing.T) { testRegistryDown(t, env, bin) })
	if after := buildah(t, env, "images", "--quiet", "--no-trunc"); after != before {
		t.Errorf("failed builds left images:\n%s\nbefore:\n%s", after, before)
	}
}

func fails(t *testing.T, res Result, err error, code int) {
	t.Helper()
	if report.ExitCode(err) != code || len(res.Tags) > 0 {
		t.Errorf("%v (exit code %d) with tags %v, want exit code %d and none", err, report.ExitCode(err), res.Tags, code)
	}
}

func testCPU(t *testing.T, env []string, bin string) {
	req := request(t, env, bin)
	res, err := Build(t.Context(), req)
	if err != nil {
		t.Fatal(full(err))
	}
	tag := res.Tags[0]
	defer buildah(t, env, "rmi", tag)
	for _, l := range []string{"contract", "torch", "run-package.digest", "wheel.digest", "target"} {
		if res.Labels[labelPrefix+l] == "" {
			t.Errorf("no label %s: %v", l, res.Labels)
		}
	}
	config := buildah(t, env, "inspect", "--type", "image", "--format", "{{.Docker.Config.Healthcheck}} {{.OCIv1.Config.User}} {{.OCIv1.Config.Env}} {{.OCIv1.Config.Labels}}", tag)
	for _, want := range []string{"probe --level 1", " 65532:65532 ", "INVAR_HOME=/opt/invar", res.Labels[labelPrefix+"wheel.digest"]} {
		if !strings.Contains(config, want) {
			t.Errorf("no %q in the image's configuration:\n%s", want, config)
		}
	}
	if strings.Contains(config, "VLLM_BATCH_INVARIANT") {
		t.Errorf("VLLM_BATCH_INVARIANT stays in the image:\n%s", config)
	}
	log, err := os.ReadFile(res.Log)
	if err != nil || !strings.Contains(string(log), "proved to level 7 of 7") {
		t.Errorf("the log (%v) does not say that level 7 was proved", err)
	}
	ctr := buildah(t, env, "from", "--pull-never", tag)
	defer buildah(t, env, "rm", ctr)
	root := buildah(t, env, "mount", ctr)
	for _, left := range []string{"usr/bin/g++", "usr/local/bin/install-packages", "root/.cache", "build-cache/uv"} {
		if _, err := os.Lstat(filepath.Join(root, left)); err == nil {
			t.Errorf("/%s is in the image", left)
		}
	}
	noLitter(t, root)
	if out := buildah(t, env, "run", "--user", "65532", ctr, "--", "invar", "probe", "--level", "1"); !strings.Contains(out, "proved to level 1") {
		t.Errorf("the health check of the user that the image runs as:\n%s", out)
	}
}

// testDiskFull writes an archive to a file system that has no room for it: not
// for the copy of invar that the build needs, then not for the export.
func testDiskFull(t *testing.T, env []string, bin string) {
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
		req := binaryRequest(t, env, bin)
		req.Output = filepath.Join(small, "image.tar")
		res, err := Build(t.Context(), req)
		fails(t, res, err, report.BuildFailed)
		if !strings.Contains(full(err), "no space left") {
			t.Errorf("%d bytes of room: %s", room, full(err))
		}
		nothing(t, small)
	}
}

// testRegistryDown pushes to a registry that is gone when the image is built.
func testRegistryDown(t *testing.T, env []string, bin string) {
	req := binaryRequest(t, env, bin)
	req.Push, req.Repository = true, "127.0.0.1:1/me/invar"
	res, err := Build(t.Context(), req)
	fails(t, res, err, report.BuildFailed)
	if !strings.Contains(full(err), "built and not written") {
		t.Errorf("registry down: %s", full(err))
	}
}

// testFromRegistry builds on a base that buildah pulls, whose layers are compressed.
func testFromRegistry(t *testing.T, env []string, bin string) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	pushBusybox(t, host+"/busybox:1")
	req := binaryRequest(t, env, bin)
	req.Base, req.Repository, req.Push = host+"/busybox:1", host+"/me/invar", true
	res, err := Build(t.Context(), req)
	if err != nil {
		t.Fatal(full(err))
	}
	if !strings.HasPrefix(res.From, host+"/busybox@sha256:") || len(res.Tags) != 1 {
		t.Errorf("from %s, tags %v", res.From, res.Tags)
	}
	ref, err := name.ParseReference(res.Tags[0])
	if err != nil {
		t.Fatal(err)
	}
	img, err := remote.Image(ref)
	if err != nil {
		t.Fatal(err)
	}
	if d, err := img.Digest(); err != nil || d.String() != res.Digest {
		t.Errorf("the registry has %v (%v), the result says %s", d, err, res.Digest)
	}
	if files := contents(t, img); len(files["bin/sh"]) == 0 || len(files["invar"]) == 0 {
		t.Errorf("the image holds %d files, want the base's and invar", len(files))
	}
}

// binaryRequest is a request for the image of invar alone, which is quick.
func binaryRequest(t *testing.T, env []string, bin string) Request {
	t.Helper()
	req := request(t, env, bin)
	req.Families, req.OS, req.Base, req.Args = []string{"binary"}, "", "", nil
	return req
}

// TestRefused: what cannot become an image is refused before anything is built.
func TestRefused(t *testing.T) {
	t.Parallel()
	env := needBuildah(t)
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	bin, arm := static(t, "amd64"), static(t, "arm64")
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Fatal(err)
	}
	ctr := buildah(t, env, "from", "scratch")
	buildah(t, env, "config", "--arch", "arm64", ctr)
	buildah(t, env, "commit", "--quiet", "--rm", ctr, "localhost/arm:1")
	buildah(t, env, "push", "--quiet", "--tls-verify=false", "localhost/arm:1", "docker://"+host+"/arm:1")
	for name, c := range map[string]struct {
		change func(*Request)
		code   int
		says   string
	}{
		"base not there":                 {func(r *Request) { r.Base = host + "/none:1" }, report.Unmet, "cannot be found"},
		"unknown family":                 {func(r *Request) { r.Families = []string{"gpu"} }, report.Usage, "binary, cpu, cuda"},
		"unknown system":                 {func(r *Request) { r.OS = "windows" }, report.Usage, "operating system"},
		"refused SoC":                    {func(r *Request) { r.Families = []string{"ascend310p"} }, report.Unmet, "refused"},
		"base of another":                {func(r *Request) { r.Base = "localhost/arm:1" }, report.Unmet, "for another platform"},
		"base of another, in a registry": {func(r *Request) { r.Base = host + "/arm:1" }, report.Unmet, "for another platform"},
		"registry down":                  {func(r *Request) { r.Base = "127.0.0.1:1/none:1" }, report.Unmet, "cannot be found"},
		"no base reference":              {func(r *Request) { r.Base = "Not A Name" }, report.Usage, "base image"},
		"binary for another":             {func(r *Request) { r.Binary = arm }, report.Unmet, "another platform"},
		"binary not static":              {func(r *Request) { r.Binary = sh }, report.Unmet, "not static"},
		"no binary":                      {func(r *Request) { r.Binary = "build_test.go" }, report.Unmet, "the invar for the image"},
		"other platform":                 {func(r *Request) { r.Platform = "linux/riscv64" }, report.Usage, "linux/arm64"},
		"push without name":              {func(r *Request) { r.Push, r.Repository = true, LocalRepository }, report.Usage, "--repository"},
		"bad name":                       {func(r *Request) { r.Repository = "Registry Example" }, report.Usage, "image name"},
		"no builder":                     {func(r *Request) { r.Env, r.Builder = []string{"PATH=/nonexistent"}, "" }, report.Unmet, "no builder"},
	} {
		req := request(t, env, bin)
		c.change(&req)
		res, err := Build(t.Context(), req)
		if report.ExitCode(err) != c.code || !strings.Contains(full(err), c.says) || len(res.Tags) > 0 {
			t.Errorf("%s: exit code %d, %s; want %d and %q", name, report.ExitCode(err), full(err), c.code, c.says)
		}
	}
}

func full(err error) string {
	if p, ok := errors.AsType[*report.Problem](err); ok {
		return p.Error() + " want " + p.Want + " got " + p.Got + " hint " + p.Hint + "\n" + p.Tail
	}
	return fmt.Sprint(err)
}
