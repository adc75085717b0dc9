package image

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/testkit"
)

func TestMatrix(t *testing.T) {
	t.Parallel()
	rows, err := Plan(Options{Repository: "registry.example/invar", Version: "1.0.0"})
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]Row{}
	for _, r := range rows {
		byName[r.Name] = r
	}
	for name, want := range map[string]struct{ base, soc, tag string }{
		"binary-none":                 {"scratch", "", ":1.0.0-bin"},
		"cpu-ubuntu24.04":             {"docker.io/library/ubuntu:24.04", "", ":1.0.0-cpu"},
		"cuda-ubuntu24.04":            {"docker.io/library/ubuntu:24.04", "", ":1.0.0-cuda"},
		"ascend910b-ubuntu22.04":      {"quay.io/ascend/cann:9.1.0-910b-ubuntu22.04-py3.12", "ascend910b1", ":1.0.0"},
		"ascend910b-openeuler24.03":   {"quay.io/ascend/cann:9.1.0-910b-openeuler24.03-py3.12", "ascend910b1", ":1.0.0-openeuler"},
		"ascend910_93-openeuler24.03": {"quay.io/ascend/cann:9.1.0-a3-openeuler24.03-py3.12", "ascend910_9391", ":1.0.0-a3-openeuler"},
		"ascend950-ubuntu22.04":       {"quay.io/ascend/cann:9.1.0-950-ubuntu22.04-py3.12", "ascend950dt_9582", ":1.0.0-a5"},
		"ascend950-openeuler24.03":    {"quay.io/ascend/cann:9.1.0-950-openeuler24.03-py3.12", "ascend950dt_9582", ":1.0.0-950dt-openeuler"},
	} {
		r, ok := byName[name]
		if !ok {
			t.Errorf("%s is not planned", name)
			continue
		}
		if r.Base != want.base || r.SoC != want.soc {
			t.Errorf("%s: base %s, SoC %s; want %s, %s", name, r.Base, r.SoC, want.base, want.soc)
		}
		if !strings.Contains(strings.Join(r.Tags, " ")+" ", want.tag+" ") {
			t.Errorf("%s: tags %v, want one ending in %s", name, r.Tags, want.tag)
		}
	}
}

// TestArguments: what is given replaces defaults, reaches the base, and a name
// that no Dockerfile has is refused.
func TestArguments(t *testing.T) {
	t.Parallel()
	rows, err := Plan(Options{Families: []string{"ascend910b"}, OS: "openeuler24.03", Args: map[string]string{"CANN_VERSION": "8.5.1", "CANN_QUAY_URL": "mirror.example/cann", "SOC_VERSION": "ascend910b4"}})
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != 1 || rows[0].Base != "mirror.example/cann:8.5.1-910b-openeuler24.03-py3.12" || rows[0].SoC != "ascend910b4" {
		t.Errorf("%+v", rows)
	}
	for _, o := range []Options{
		{Families: []string{"cpu"}, Args: map[string]string{"CANN_VERSION": "9"}},
		{Families: []string{"gpu"}},
		{OS: "windows"},
		{Families: []string{"cpu"}, Platforms: []string{"linux/riscv64"}},
	} {
		if _, err := Plan(o); report.ExitCode(err) != report.Usage {
			t.Errorf("%+v: %v, want a usage error", o, err)
		}
	}
	if _, err := Plan(Options{Families: []string{"ascend310p"}}); report.ExitCode(err) != report.Unmet {
		t.Errorf("ascend310p: %v, want the refusal with its reason", err)
	}
}

// TestBadMatrix: mistakes in the data are found when it is read.
func TestBadMatrix(t *testing.T) {
	t.Parallel()
	good, err := os.ReadFile("../../docker/images.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string][2]string{
		"unknown key":          {"title: Atlas A2", "titel: Atlas A2"},
		"tag twice":            {`"-a3"`, `"-openeuler"`},
		"no such target":       {"target: cuda", "target: rocm"},
		"operators of nothing": {"target: cpu", `target: ""`},
		"no such Dockerfile":   {"cuda.Dockerfile", "cuda.dockerfile"},
		"argument not there":   {"${CANN_VERSION}-a3-ubuntu22.04", "${CANN}-a3-ubuntu22.04"},
		"no ending of its own": {`tags: ["-cuda"]`, `tags: [""]`},
	} {
		text := strings.Replace(string(good), change[0], change[1], 1)
		if text == string(good) {
			t.Errorf("%s: nothing to change", name)
		}
		if _, err := decode("images.yaml", []byte(text)); err == nil {
			t.Errorf("%s: was read without an error", name)
		}
	}
}

// TestBakeFile: docker/docker-bake.hcl is what the matrix says.
func TestBakeFile(t *testing.T) {
	t.Parallel()
	rows, err := Plan(Options{Repository: LocalRepository, Version: "1.0.0"})
	if err != nil {
		t.Fatal(err)
	}
	var want bytes.Buffer
	if err := WriteBake(&want, rows); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../../docker/docker-bake.hcl")
	if err != nil || !bytes.Equal(got, want.Bytes()) {
		t.Errorf("docker/docker-bake.hcl is not what the matrix says (%v): invar image plan --bake > docker/docker-bake.hcl", err)
	}
}

// TestBake: docker buildx reads the file as the plan that it was written from.
func TestBake(t *testing.T) {
	t.Parallel()
	buildx := filepath.Join(testkit.Cache(), "bin", "buildx")
	if _, err := os.Stat(buildx); err != nil {
		skip := t.Skipf
		if os.Getenv("INVAR_CI") == "1" {
			skip = t.Fatalf
		}
		skip("needs buildx (%v): run .ci/setup", err)
	}
	cmd := exec.Command(buildx, "bake", "--print", "--file", "docker-bake.hcl")
	cmd.Dir = "../../docker"
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var bake struct {
		Target map[string]struct {
			Dockerfile      string
			Args            map[string]string
			Tags, Platforms []string
		}
	}
	if err := json.Unmarshal(out, &bake); err != nil {
		t.Fatal(err)
	}
	rows, err := Plan(Options{Repository: LocalRepository, Version: "1.0.0"})
	if err != nil {
		t.Fatal(err)
	}
	if len(bake.Target) != len(rows) {
		t.Errorf("%d targets, want %d", len(bake.Target), len(rows))
	}
	for _, r := range rows {
		got := bake.Target[bakeName(r)]
		want := maps.Clone(r.Args)
		want["BASE"], want["TARGET"] = r.Base, r.Target
		if got.Dockerfile != r.Dockerfile || !maps.Equal(got.Args, want) || !slices.Equal(got.Tags, r.Tags) || !slices.Equal(got.Platforms, r.Platforms) {
			t.Errorf("%s: bake has %+v, the plan %+v", r.Name, got, r)
		}
	}
}
