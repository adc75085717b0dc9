package image

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/run"
)

// TestFindBuilder: a name on PATH is not enough, it has to answer.
func TestFindBuilder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range Builders() {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	env := []string{"PATH=" + dir}
	docker := []run.Exchange{
		{Argv: []string{"docker", "buildx", "version"}, Stdout: "github.com/docker/buildx v0.38.2 abc\n"},
		{Argv: []string{"docker", "info", "--format", "{{.ServerVersion}}"}, Stdout: "29.0.1\n"},
	}
	noEngine := []run.Exchange{
		docker[0],
		{Argv: docker[1].Argv, Code: 1, Stderr: "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?\n"},
	}
	noBuildx := []run.Exchange{{Argv: docker[0].Argv, Code: 1, Stderr: "docker: 'buildx' is not a docker command.\n"}}
	noDaemon := []run.Exchange{
		{Argv: []string{"buildctl", "--version"}, Stdout: "buildctl github.com/moby/buildkit v0.34.2\n"},
		{Argv: []string{"buildctl", "debug", "workers"}, Code: 1, Stderr: "error: failed to list workers: connection refused\n"},
	}
	buildah := []run.Exchange{
		{Argv: []string{"buildah", "--version"}, Stdout: "buildah version 1.28.2 (image-spec 1.1.0-rc2, runtime-spec 1.0.2-dev)\n"},
		{Argv: []string{"buildah", "info"}, Stdout: "{}\n"},
	}
	none := []run.Exchange{
		{Argv: []string{"buildah", "--version"}, Code: 125, Stderr: "Error: kernel does not support overlay\n"},
		{Argv: []string{"podman", "--version"}, Code: 125, Stderr: "Error: no policy.json file found\n"},
	}
	for _, c := range []struct {
		name, asked, want, said string
		answers                 [][]run.Exchange
	}{
		{"docker with an engine", "", "docker", "", [][]run.Exchange{docker}},
		{"docker without an engine", "", "buildah", "", [][]run.Exchange{noEngine, noDaemon, buildah}},
		{"docker without buildx", "", "buildah", "", [][]run.Exchange{noBuildx, noDaemon, buildah}},
		{"the named one", "buildah", "buildah", "", [][]run.Exchange{buildah}},
		{"the named one does not answer", "docker", "", "Is the docker daemon running?", [][]run.Exchange{noEngine}},
		{"none answers", "", "", "no policy.json", [][]run.Exchange{noEngine, noDaemon, none}},
	} {
		var all []run.Exchange
		for _, a := range c.answers {
			all = append(all, a...)
		}
		b, err := FindBuilder(t.Context(), run.NewReplay(all), env, c.asked)
		if b.Name != c.want {
			t.Errorf("%s: %q (%v), want %q", c.name, b.Name, err, c.want)
		}
		if c.want != "" {
			continue
		}
		p, ok := errors.AsType[*report.Problem](err)
		if !ok || p.Code != report.Unmet || !strings.Contains(p.Got, c.said) {
			t.Errorf("%s: %v, want exit code 3 and what each said", c.name, err)
		}
	}
	if _, err := FindBuilder(t.Context(), run.NewReplay(nil), env, "kaniko"); report.ExitCode(err) != report.Usage {
		t.Errorf("kaniko: %v, want a usage error", err)
	}
}

func TestLoopback(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]bool{
		"localhost": true, "localhost:5000": true, "127.0.0.1:41231": true, "[::1]:5000": true,
		"index.docker.io": false, "10.0.0.1:5000": false, "localhost.example": false,
	} {
		if loopback(host) != want {
			t.Errorf("%s: %t", host, !want)
		}
	}
}
