package image

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// cudaBase is what .ci/setup makes: torchBase with the CUDA compiler wheels.
const cudaBase = "localhost/debian-torch-cuda:2.15"

// TestCUDA builds the CUDA image for one arch with the compiler wheels, without
// a GPU: the last step proves the machine code.
func TestCUDA(t *testing.T) {
	env := needBuildah(t)
	have := exec.Command("buildah", "inspect", "--type", "image", cudaBase)
	have.Env = env
	if err := have.Run(); err != nil {
		if os.Getenv("INVAR_CI") == "1" {
			t.Fatalf("no %s: %v", cudaBase, err)
		}
		t.Skipf("needs %s: run .ci/setup", cudaBase)
	}
	req := request(t, env, static(t, "amd64"))
	req.Families, req.OS, req.Base = []string{"cuda"}, "ubuntu24.04", cudaBase
	req.Args = map[string]string{"INVAR_PYTHON": "/opt/torch", "CUDA_ARCH_LIST": "9.0", "INVAR_BUILD_ARGS": ""}
	res, err := Build(t.Context(), req)
	if err != nil {
		t.Fatal(full(err))
	}
	tag := res.Tags[0]
	defer buildah(t, env, "rmi", tag)
	log, err := os.ReadFile(res.Log)
	if err != nil || !strings.Contains(string(log), "proved to level 5 of 7") {
		t.Errorf("the log (%v) does not say that level 5 was proved:\n%s", err, tailOf(log))
	}
	if got := res.Labels[labelPrefix+"run-package"]; !strings.Contains(got, "cuda13.2") {
		t.Errorf("the run package of the labels is %q", got)
	}
	ctr := buildah(t, env, "from", "--pull-never", tag)
	defer buildah(t, env, "rm", ctr)
	if out := buildah(t, env, "run", "--user", "65532", ctr, "--", "invar", "probe", "cuda", "--level", "1"); !strings.Contains(out, "proved to level 1") {
		t.Errorf("the health check of the user that the image runs as:\n%s", out)
	}
}
