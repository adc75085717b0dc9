package image

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/run"
)

// A Builder is a program that builds from Dockerfiles. A name on PATH says
// little ("docker" may be podman's, or have no engine behind it), so it counts
// only after it has answered.
type Builder struct {
	Name    string `json:"name"`    // one of Builders
	Version string `json:"version"` // as it says itself
}

// A kind is what differs between builders.
type kind struct {
	name  string
	asks  [][]string // commands that must all work; the first prints the version
	argv  func(program string, j Job) []string
	store bool                       // the image lands in a store of this host, not in a file
	load  func(file string) []string // gives an archive to the builder's store; nil when it has none
}

// kinds in the order of preference: a builder that keeps to one image format
// and needs no daemon comes before one that has to be started.
var kinds = []kind{
	{"docker", [][]string{{"docker", "buildx", "version"}, {"docker", "info", "--format", "{{.ServerVersion}}"}}, dockerArgv, false, func(file string) []string { return []string{"docker", "load", "--input", file} }},
	{"buildctl", [][]string{{"buildctl", "--version"}, {"buildctl", "debug", "workers"}}, buildctlArgv, false, nil},
	{"buildah", [][]string{{"buildah", "--version"}, {"buildah", "info"}}, buildahArgv, true, nil},
	{"podman", [][]string{{"podman", "--version"}, {"podman", "info"}}, buildahArgv, true, nil},
}

// Builders names the builders that invar can drive.
func Builders() []string {
	var names []string
	for _, k := range kinds {
		names = append(names, k.name)
	}
	return names
}

// FindBuilder asks the builders of this host, or only the named one, and takes
// the first that answers. The error says of each what it answered.
func FindBuilder(ctx context.Context, r run.Runner, env []string, name string) (Builder, error) {
	var said []string
	for _, k := range kinds {
		if name != "" && k.name != name {
			continue
		}
		version, err := k.ask(ctx, r, env)
		if err == nil {
			return Builder{Name: k.name, Version: version}, nil
		}
		said = append(said, k.name+": "+err.Error())
	}
	if said == nil {
		return Builder{}, report.Usagef("unknown builder %q", name).WithWant("one of "+strings.Join(Builders(), ", "), "")
	}
	return Builder{}, report.Problemf(report.Unmet, "no builder of images answers").
		WithWant("docker with buildx and a running engine, buildctl with a running buildkitd, buildah, or podman", strings.Join(said, "\n")).
		WithHint("apt-get install buildah   (dnf install buildah)")
}

func (k kind) ask(ctx context.Context, r run.Runner, env []string) (string, error) {
	version := ""
	for i, argv := range k.asks {
		if !run.Has(argv[0], env) {
			return "", fmt.Errorf("not on PATH")
		}
		res, err := r.Run(ctx, run.Cmd{Argv: argv, Env: env, Timeout: 20 * time.Second})
		if err != nil {
			return "", fmt.Errorf("%s: %s", strings.Join(argv, " "), firstLine(strings.TrimSpace(string(res.Stderr)+"\n"+string(res.Stdout)), err))
		}
		if i == 0 {
			version, _, _ = strings.Cut(strings.TrimSpace(string(res.Stdout)), "\n")
		}
	}
	return version, nil
}

func firstLine(text string, err error) string {
	line, _, _ := strings.Cut(text, "\n")
	if line == "" {
		return err.Error()
	}
	return line
}
