package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

// A job is the one of .github/workflows/release.yml that builds, in a clone.
type job struct {
	dir, temp, tag string
	steps          []step // those that are scripts
}

type step struct {
	Name string
	Run  string
	Env  map[string]string
}

func releaseJob(t *testing.T, clone string) job {
	t.Helper()
	var w struct {
		Jobs map[string]struct{ Steps []step }
	}
	if err := yaml.Unmarshal([]byte(read(t, filepath.Join(clone, ".github/workflows/release.yml"))), &w); err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^const release = "(.*)"$`).FindStringSubmatch(read(t, filepath.Join(clone, "cmd/invar/version.go")))
	if m == nil {
		t.Fatal("cmd/invar/version.go names no release")
	}
	j := job{dir: clone, temp: t.TempDir(), tag: "v" + m[1]}
	for _, s := range w.Jobs["build"].Steps {
		if s.Run != "" {
			j.steps = append(j.steps, s)
		}
	}
	if len(j.steps) != 4 {
		t.Fatalf("%d scripts in the job that builds, want 4", len(j.steps))
	}
	// The workflow compiles twice from nothing; here the second time may take
	// what the first one compiled.
	if err := os.Symlink(strings.TrimSpace(runIn(t, clone, nil, "go", "env", "GOCACHE")), filepath.Join(j.temp, "gocache")); err != nil {
		t.Fatal(err)
	}
	return j
}

// run hands a step to bash as the runner does.
func (j job) run(t *testing.T, s step) (int, string) {
	t.Helper()
	env := []string{"RUNNER_TEMP=" + j.temp}
	for k, v := range s.Env {
		if v != "${{ github.ref_name }}" {
			t.Fatalf("%s: %s is %q", s.Name, k, v)
		}
		env = append(env, k+"="+j.tag)
	}
	out, err := command(j.dir, env, "bash", "-e", "-c", s.Run).CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode(), string(out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return 0, string(out)
}

// testWorkflow: the steps that compare fail when there is something to find.
func testWorkflow(t *testing.T, j job) {
	compare, tag := j.steps[2], j.steps[3]
	other := j
	other.tag = "v0.0.1"
	if code, out := other.run(t, tag); code != 1 || !strings.Contains(out, "::error") {
		t.Errorf("a tag of another release: exit code %d\n%s", code, out)
	}
	rpm := one(t, filepath.Join(j.temp, "again/dist"), "*.x86_64.rpm")
	b := []byte(read(t, rpm))
	b[len(b)/2] ^= 1
	if err := os.WriteFile(rpm, b, 0o644); err != nil {
		t.Fatal(err)
	}
	if code, out := j.run(t, compare); code == 0 {
		t.Errorf("one other bit in the second run was not seen:\n%s", out)
	}
}
