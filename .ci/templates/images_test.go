package templates

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
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

	// What was made is probed, as the file that the build wrote or as it was pushed.
	steps := w.Jobs["build"].Steps
	check := steps[len(steps)-1:]
	made := newRunner(t, nil)
	emptyImage(t, filepath.Join(made.temp, "image.tar"))
	if code := made.steps(check, more); code != 5 || !strings.Contains(made.out.String(), "no operators of invar") {
		t.Errorf("an image without operators: exit code %d, want 5\n%s", code, made.out.String())
	}
	if kept := made.used[keep]; len(kept) != 1 || kept[0].With["name"] != "invar-cpu-ubuntu24.04-amd64-py3.12-torch2.15.0" {
		t.Errorf("kept %v", kept)
	}
	pushed := newRunner(t, nil)
	more["inputs"].(map[string]any)["push"] = true
	if s := pushed.filled(check[0], more); s.With["args"] != "--image registry.example/me/invar:"+version(t)+"-amd64-cpu --platform linux/amd64 --require 1" {
		t.Errorf("the image that was pushed is probed with %q", s.With["args"])
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

// emptyImage writes an image as docker save does, with nothing in it.
func emptyImage(t *testing.T, file string) {
	t.Helper()
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	w := tar.NewWriter(f)
	layer := make([]byte, 1024) // the end of an archive
	config := fmt.Appendf(nil, `{"architecture":"amd64","os":"linux","config":{},"rootfs":{"type":"layers","diff_ids":["sha256:%x"]}}`, sha256.Sum256(layer))
	name := fmt.Sprintf("%x.json", sha256.Sum256(config))
	for _, e := range []struct {
		name    string
		content []byte
	}{
		{name, config},
		{"layer.tar", layer},
		{"manifest.json", fmt.Appendf(nil, `[{"Config":%q,"RepoTags":["made:1"],"Layers":["layer.tar"]}]`, name)},
	} {
		if err := w.WriteHeader(&tar.Header{Name: e.name, Mode: 0o644, Size: int64(len(e.content))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(e.content); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), f.Close()); err != nil {
		t.Fatal(err)
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
