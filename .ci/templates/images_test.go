package templates

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestImagesWorkflow runs the jobs of the reusable workflow one after the other,
// with a docker that notes what it is asked for.
func TestImagesWorkflow(t *testing.T) {
	t.Parallel()
	w := load[workflow](t, ".github/workflows/images.yml")
	r := serve(t)
	inputs := func(more map[string]any) map[string]any {
		in := map[string]any{
			"version": version(t), "sha256": r.digest, "url": r.url, "targets": "cpu ascend950", "os": "", "runners": "arm64=big-arm",
			"repository": "registry.example/me/invar", "tag": "", "push": true, "user": "", // as the caller gave them
		}
		for k, v := range more {
			in[k] = v
		}
		return map[string]any{"inputs": in, "secrets": map[string]any{"password": "hunter2 $(touch pwned)"}}
	}
	for name := range w.On.(map[string]any)["workflow_call"].(map[string]any)["inputs"].(map[string]any) {
		if _, ok := inputs(nil)["inputs"].(map[string]any)[name]; !ok {
			t.Errorf("the input %s is not tested", name)
		}
	}

	plan := newRunner(t, nil)
	if code := plan.steps(w.Jobs["plan"].Steps, inputs(nil)); code != 0 {
		t.Fatalf("plan: exit code %d\n%s", code, plan.out.String())
	}
	text := plan.get("matrix", "matrix")
	var matrix struct{ Include []map[string]any }
	if err := json.Unmarshal([]byte(text), &matrix); err != nil {
		t.Fatalf("fromJSON: %v\n%s", err, text)
	}
	if len(matrix.Include) != 10 { // cpu on three systems, ascend950 on two, two architectures
		t.Errorf("%d rows", len(matrix.Include))
	}
	for _, row := range matrix.Include {
		if row["arch"] == "arm64" && row["runner"] != "big-arm" {
			t.Errorf("runner %v", row["runner"])
		}
	}

	// A plan that fails stops the workflow: no empty matrix.
	bad := newRunner(t, nil)
	if code := bad.steps(w.Jobs["plan"].Steps, inputs(map[string]any{"targets": "rocm"})); code != 2 || bad.get("matrix", "matrix") != "" {
		t.Errorf("plan of an unknown target: exit code %d, want 2\n%s", code, bad.out.String())
	}

	// The build ends with invar's exit code; docker is not there, which is 3.
	build := newRunner(t, map[string]string{"PATH": withoutDocker(t)})
	more := inputs(map[string]any{"push": false})
	more["matrix"] = matrix.Include[0]
	if code := build.steps(w.Jobs["build"].Steps, more); code != 3 || !strings.Contains(build.out.String(), "no builder of images answers") {
		t.Errorf("build: exit code %d, want 3\n%s", code, build.out.String())
	}
	if s := read(t, build.summary); !strings.Contains(s, "### cpu on ubuntu24.04, linux/amd64: exit code 3") {
		t.Errorf("summary:\n%s", s)
	}

	tag := newRunner(t, noting(t))
	more = inputs(nil)
	more["needs"] = map[string]any{"plan": map[string]any{"outputs": map[string]any{"matrix": text}}}
	if code := tag.steps(w.Jobs["tag"].Steps, more); code != 0 {
		t.Fatalf("tag: exit code %d\n%s", code, tag.out.String())
	}
	asked := strings.Split(strings.TrimSpace(read(t, tag.env["NOTES"])), "\n")
	v := version(t)
	repo := "registry.example/me/invar:"
	for _, want := range []string{
		"login --username octo --password-stdin registry.example <hunter2 $(touch pwned)",
		"buildx imagetools create --tag " + repo + v + "-cpu " + repo + v + "-amd64-cpu " + repo + v + "-arm64-cpu",
		"buildx imagetools create --tag " + repo + v + "-ascend950 --tag " + repo + v + "-a5 --tag " + repo + v + "-950dt " + repo + v + "-amd64-ascend950 " + repo + v + "-arm64-ascend950",
	} {
		if !slices.Contains(asked, want) {
			t.Errorf("docker was not asked for %q:\n%s", want, strings.Join(asked, "\n"))
		}
	}
	if len(asked) != 1+5 {
		t.Errorf("docker was asked %d times:\n%s", len(asked), strings.Join(asked, "\n"))
	}
	if _, err := os.Stat(filepath.Join(tag.work, "pwned")); err == nil {
		t.Error("the password was run")
	}
}

// noting is an environment with a docker that writes its arguments to $NOTES.
func noting(t *testing.T) map[string]string {
	t.Helper()
	dir := t.TempDir()
	notes := filepath.Join(dir, "notes")
	write(t, filepath.Join(dir, "docker"), "#!/bin/sh\n{ printf '%s' \"$*\"; case $1 in login) printf ' <'; cat;; esac; echo; } >>\"$NOTES\"\n")
	if err := os.Chmod(filepath.Join(dir, "docker"), 0o755); err != nil {
		t.Fatal(err)
	}
	return map[string]string{"NOTES": notes, "PATH": dir + ":" + os.Getenv("PATH")}
}
