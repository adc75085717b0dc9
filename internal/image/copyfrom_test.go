package image

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/run"
)

// compilerBase is an image of somebody else with Python, torch and a compiler,
// which .ci/setup makes.
const compilerBase = "localhost/debian-torch-gxx:2.15"

// TestCopyFrom is the Dockerfile in docs/images.md: COPY --from and two lines
// put the operators into an image of somebody else. What came out is then
// probed without being run.
func TestCopyFrom(t *testing.T) {
	env := needBuildah(t)
	if out, err := command(env, "buildah", "inspect", "--type", "image", "--format", "{{.FromImageID}}", compilerBase); err != nil {
		if os.Getenv("INVAR_CI") == "1" {
			t.Fatalf("needs the image %s: run .ci/setup: %s", compilerBase, out)
		}
		t.Skipf("needs the image %s: run .ci/setup", compilerBase)
	}
	bin := static(t, "amd64")
	probeBare(t, env, bin)
	id := strings.ToLower(filepath.Base(filepath.Dir(t.TempDir())))
	tool, made := "localhost/invar-test/tool-"+id+":1", "localhost/invar-test/theirs-"+id+":1"
	dir := t.TempDir()
	file(t, filepath.Join(dir, "Dockerfile.tool"), "FROM scratch\nCOPY invar /invar\n")
	b, err := os.ReadFile(bin)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "invar"), b, 0o755); err != nil {
		t.Fatal(err)
	}
	buildah(t, env, "build", "--quiet", "--file", filepath.Join(dir, "Dockerfile.tool"), "--tag", tool, dir)
	defer buildah(t, env, "rmi", tool)
	file(t, filepath.Join(dir, "Dockerfile"), inDocs(t, map[string]string{
		"registry.example/theirs:1": compilerBase, "registry.example/me/invar:1.0.0-bin": tool, "/opt/venv": "/opt/torch",
	}))
	buildah(t, env, "build", "--quiet", "--format", "docker", "--layers=false", "--file", filepath.Join(dir, "Dockerfile"), "--tag", made, dir)
	defer buildah(t, env, "rmi", made)
	ctr := buildah(t, env, "from", "--pull-never", made)
	defer buildah(t, env, "rm", ctr)
	root := buildah(t, env, "mount", ctr)
	out, err := command(env, bin, "probe", "--root", root)
	if err != nil || !strings.Contains(out, "4 wiring             pass") || !strings.Contains(out, "5 kernels            pass") || !strings.Contains(out, "proved to level 1 of 7") {
		t.Errorf("%v\n%s", err, out)
	}
	t.Log(out)
	if out, err := command(env, bin, "probe", "--root", root, "--require", "5"); exitCode(err) != report.Inconclusive {
		t.Errorf("--require 5: %v\n%s", err, out)
	}
}

// inDocs is the Dockerfile of docs/images.md with other names in it.
func inDocs(t *testing.T, names map[string]string) string {
	t.Helper()
	b, err := os.ReadFile("../../docs/images.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, ok := strings.Cut(string(b), "```dockerfile\n")
	text, _, ended := strings.Cut(text, "```")
	if !ok || !ended {
		t.Fatal("no Dockerfile in docs/images.md")
	}
	for from, to := range names {
		if !strings.Contains(text, from) {
			t.Fatalf("no %s in the Dockerfile of docs/images.md:\n%s", from, text)
		}
		text = strings.ReplaceAll(text, from, to)
	}
	return text
}

// probeBare probes an image that a real builder wrote, without operators.
func probeBare(t *testing.T, env []string, bin string) {
	t.Helper()
	for _, to := range []string{"oci-archive", "docker-archive"} {
		path := filepath.Join(t.TempDir(), "image")
		buildah(t, env, "push", "--quiet", "--compression-format", "gzip", "--compression-level", "1", bareBase, to+":"+path)
		out, err := command(env, bin, "probe", "--image", path)
		if exitCode(err) != report.CheckFailed || !strings.Contains(out, "no operators of invar are installed") {
			t.Errorf("%s: %v\n%s", to, err, out)
		}
	}
}

func command(env []string, argv ...string) (string, error) {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = run.Unsetenv(env, "INVAR_HOME", "INVAR_PYTHON", "VIRTUAL_ENV")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func exitCode(err error) int {
	if e, ok := err.(*exec.ExitError); ok { //nolint:errorlint // of exec itself
		return e.ExitCode()
	}
	if err != nil {
		return -1
	}
	return 0
}

func file(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(fmt.Errorf("%s: %w", path, err))
	}
}
