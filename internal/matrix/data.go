// Package matrix lists what a CI builds: every target on every architecture,
// operating system, Python and torch that belong together. It joins data of
// others (targets, images, the published combinations of Ascend) and builds
// nothing.
package matrix

import (
	_ "embed"
	"fmt"
	"strings"
	"sync"

	"github.com/invar-ops/invar/internal/data"
	"github.com/invar-ops/invar/internal/version"
)

//go:embed matrix.yaml
var embedded []byte

// facts is matrix.yaml.
type facts struct {
	Runners       []runner  `yaml:"runners"`
	RunnersSource string    `yaml:"runners_source"`
	Bases         []base    `yaml:"bases"`
	Torch         []release `yaml:"torch"` // new to old
	TorchSource   string    `yaml:"torch_source"`
}

type runner struct {
	Arch  string `yaml:"arch"` // as in platforms: amd64
	Label string `yaml:"label"`
}

// A base is an image of docker/images.yaml and the Pythons that go with it.
type base struct {
	Base    string       `yaml:"base"`
	Pythons []basePython `yaml:"pythons"`
	Source  string       `yaml:"source"`
}

type basePython struct {
	Version string `yaml:"version"`
	Image   string `yaml:"image"` // that brings it; empty is the base itself
}

// A release is one of torch.
type release struct {
	Version string `yaml:"version"`
	Python  string `yaml:"python"` // range
}

var load = sync.OnceValues(func() (facts, error) { return decode("internal/matrix/matrix.yaml", embedded) })

func decode(file string, b []byte) (facts, error) {
	var f facts
	if err := data.Decode(file, b, &f); err != nil {
		return f, err
	}
	if err := f.check(); err != nil {
		return f, fmt.Errorf("%s: %w", file, err)
	}
	return f, nil
}

// check finds what would make a wrong row, or none, without a word.
func (f facts) check() error {
	if f.RunnersSource == "" || f.TorchSource == "" {
		return fmt.Errorf("facts need a source")
	}
	for i, r := range f.Torch {
		v, err := version.Parse(version.PEP440, r.Version)
		if err != nil {
			return fmt.Errorf("torch: %w", err)
		}
		if i > 0 && !version.Less(v, version.MustParse(version.PEP440, f.Torch[i-1].Version)) {
			return fmt.Errorf("torch: %s after %s; want new to old", r.Version, f.Torch[i-1].Version)
		}
		if _, err := version.ParseRange(version.PEP440, r.Python, version.RefusePre); err != nil {
			return fmt.Errorf("torch %s: %w", r.Version, err)
		}
	}
	seen := map[string]bool{}
	for _, b := range f.Bases {
		if seen[b.Base] || b.Base == "" || b.Source == "" || len(b.Pythons) == 0 {
			return fmt.Errorf("base %q: twice, or without Pythons or source", b.Base)
		}
		seen[b.Base] = true
		for _, p := range b.Pythons {
			if _, err := version.Parse(version.PEP440, p.Version); err != nil {
				return fmt.Errorf("base %s: %w", b.Base, err)
			}
		}
	}
	return nil
}

// pythons are those of a base image.
func (f facts) pythons(ref string) ([]basePython, error) {
	tagged, _, _ := strings.Cut(ref, "@")
	repository := tagged
	if i := strings.LastIndexByte(repository, ':'); i > strings.LastIndexByte(repository, '/') {
		repository = repository[:i]
	}
	for _, b := range f.Bases {
		if b.Base == tagged || b.Base == repository {
			return b.Pythons, nil
		}
	}
	return nil, fmt.Errorf("internal/matrix/matrix.yaml: no Pythons for the base image %s", ref)
}

func (f facts) runner(arch string) (string, error) {
	for _, r := range f.Runners {
		if r.Arch == arch {
			return r.Label, nil
		}
	}
	return "", fmt.Errorf("internal/matrix/matrix.yaml: no runner for %s", arch)
}
