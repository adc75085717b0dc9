package deployment

import (
	_ "embed"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/invar-ops/invar/internal/data"
)

//go:embed images.yaml
var imagesYAML []byte

// An image is what is known of the images of one repository.
type image struct {
	Repository string   `yaml:"repository"`
	Engine     string   `yaml:"engine"`
	Device     string   `yaml:"device"`
	Version    bool     `yaml:"version"` // its tags begin with the engine's version
	Entrypoint []string `yaml:"entrypoint"`
	Source     string   `yaml:"source"`
	Tags       []struct {
		Word   string `yaml:"word"`
		Device string `yaml:"device"`
		Arch   string `yaml:"arch"`
	} `yaml:"tags"`
}

type named struct {
	Name   string `yaml:"name"`
	Device string `yaml:"device"`
}

type containers struct {
	Images    []image `yaml:"images"`
	Resources []named `yaml:"resources"`
	Files     []named `yaml:"files"`
}

var known = sync.OnceValue(func() containers {
	var c containers
	if err := data.Decode("internal/deployment/images.yaml", imagesYAML, &c); err != nil {
		panic(err) // the file is part of the binary: a test reads it
	}
	return c
})

// ImageFacts is what an image's name tells.
type ImageFacts struct {
	Engine  string // vllm or sglang
	Version string // of the engine, without "v"; "" when the tag does not say it
	Device  string // cuda, ascend, cpu, rocm
	Arch    string // "ascend310p", or ""
}

// FactsOfImage reads an image's reference. ok is false for an image that is
// no engine's own.
func FactsOfImage(reference string) (f ImageFacts, ok bool) {
	found, tag, ok := imageOf(reference)
	if !ok {
		return f, false
	}
	f = ImageFacts{Engine: found.Engine, Device: found.Device}
	if m := tagVersion.FindStringSubmatch(tag); m != nil && found.Version {
		f.Version = m[1]
	}
	words := strings.FieldsFunc(tag, func(r rune) bool { return r == '-' || r == '_' })
	for _, t := range found.Tags {
		if !slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(w, t.Word) }) {
			continue
		}
		if t.Device != "" {
			f.Device = t.Device
		}
		if t.Arch != "" {
			f.Arch = t.Arch
		}
	}
	return f, true
}

// tagVersion is a version at the beginning of a tag: v0.11.0rc1-a3.
var tagVersion = regexp.MustCompile(`^v?(\d+\.\d+(?:\.\d+)*(?:(?:a|b|rc)\d+)?(?:\.post\d+)?(?:\.dev\d+)?)(?:[-_+]|$)`)

// splitReference is an image's repository and tag. A port is no tag, a digest neither.
func splitReference(reference string) (repository, tag string) {
	reference, _, _ = strings.Cut(reference, "@")
	if colon := strings.LastIndexByte(reference, ':'); colon > strings.LastIndexByte(reference, '/') {
		return reference[:colon], reference[colon+1:]
	}
	return reference, ""
}

// entrypointOf is what an engine's own image starts; nil for other images.
func entrypointOf(reference string) []string {
	found, _, _ := imageOf(reference)
	return found.Entrypoint
}

// imageOf is the known image that a reference names, and its tag.
func imageOf(reference string) (found image, tag string, ok bool) {
	repository, tag := splitReference(reference)
	for _, i := range known().Images {
		if repository == i.Repository || strings.HasSuffix(repository, "/"+i.Repository) {
			return i, tag, true
		}
	}
	return image{}, tag, false
}

// deviceOf is the kind of device that a resource or a device file belongs to.
func deviceOf(list []named, name string) string {
	for _, n := range list {
		if strings.HasPrefix(name, n.Name) {
			return n.Device
		}
	}
	return ""
}
