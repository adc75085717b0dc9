// Package image plans and builds the container images that carry the
// operators. The matrix is data (docker/images.yaml); builders are asked what
// they are; nothing half built gets a tag.
package image

import (
	"fmt"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/invar-ops/invar/docker"
	"github.com/invar-ops/invar/internal/data"
	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/target"
)

// A Family is one kind of image: a target and the Dockerfile for it.
type Family struct {
	Name       string    `yaml:"name" json:"name"`
	Title      string    `yaml:"title" json:"title"`
	Target     string    `yaml:"target" json:"target"`
	SoC        []string  `yaml:"soc" json:"soc"` // SOC_VERSION of the build, the default first; none outside Ascend
	Dockerfile string    `yaml:"dockerfile" json:"dockerfile"`
	Platforms  []string  `yaml:"platforms" json:"platforms"` // "linux/amd64"
	Require    int       `yaml:"require" json:"require"`     // probe level that the build must reach
	Args       []Arg     `yaml:"args" json:"args"`
	Variants   []Variant `yaml:"variants" json:"variants"`
	Source     string    `yaml:"source" json:"source"`
}

// An Arg is a build argument.
type Arg struct {
	Name    string `yaml:"name" json:"name"`
	Default string `yaml:"default" json:"default"`
	Help    string `yaml:"help" json:"help"`
}

// A Variant is a family on one operating system.
type Variant struct {
	OS      string   `yaml:"os" json:"os"`
	Manager string   `yaml:"manager" json:"manager"` // apt or dnf
	Base    string   `yaml:"base" json:"base"`       // with ${ARG}
	Tags    []string `yaml:"tags" json:"tags"`       // endings of tags
}

// Families reads the matrix and checks what a decoder cannot.
func Families() ([]Family, error) {
	b, err := fs.ReadFile(docker.FS, "images.yaml")
	if err != nil {
		return nil, err
	}
	return decode("docker/images.yaml", b)
}

func decode(file string, b []byte) ([]Family, error) {
	var m struct {
		Families []Family `yaml:"families"`
	}
	if err := data.Decode(file, b, &m); err != nil {
		return nil, err
	}
	tags := map[string]string{}
	for _, f := range m.Families {
		if err := f.check(); err != nil {
			return nil, fmt.Errorf("%s: %s: %w", file, f.Name, err)
		}
		for _, v := range f.Variants {
			for _, t := range v.Tags {
				if other, taken := tags[t]; taken {
					return nil, fmt.Errorf("%s: tag ending %q is that of %s and of %s on %s", file, t, other, f.Name, v.OS)
				}
				tags[t] = f.Name + " on " + v.OS
			}
		}
	}
	return m.Families, nil
}

func (f Family) check() error {
	if f.Require > 0 || f.Target != "" { // else it holds no operators
		if _, err := target.Find(f.Target); err != nil {
			return err
		}
	}
	if _, err := fs.Stat(docker.FS, f.Dockerfile); err != nil {
		return err
	}
	for _, v := range f.Variants {
		if len(v.Tags) == 0 || v.Tags[0] == "" {
			return fmt.Errorf("%s: an image needs a tag ending of its own", v.OS)
		}
		if _, err := expand(v.Base, f.defaults()); err != nil {
			return fmt.Errorf("%s: base: %w", v.OS, err)
		}
	}
	return nil
}

// defaults are the values of the build arguments, those of the SoC included.
func (f Family) defaults() map[string]string {
	values := map[string]string{}
	for _, a := range f.Args {
		values[a.Name] = a.Default
		if a.Name == socArg && a.Default == "" && len(f.SoC) > 0 {
			values[a.Name] = f.SoC[0]
		}
	}
	return values
}

const socArg = "SOC_VERSION"

var reference = regexp.MustCompile(`\$\{([A-Z_]+)\}`)

// expand fills ${NAME} from values; an unknown name is an error.
func expand(text string, values map[string]string) (string, error) {
	var missing string
	out := reference.ReplaceAllStringFunc(text, func(m string) string {
		name := reference.FindStringSubmatch(m)[1]
		v, ok := values[name]
		if !ok {
			missing = name
		}
		return v
	})
	if missing != "" {
		return "", fmt.Errorf("%q names the argument %s, which the family does not have", text, missing)
	}
	return out, nil
}

// Find is the family called name.
func Find(name string) (Family, error) {
	all, err := Families()
	if err != nil {
		return Family{}, err
	}
	names := make([]string, 0, len(all))
	for _, f := range all {
		if f.Name == name {
			return f, nil
		}
		names = append(names, f.Name)
	}
	if c, ok := target.RefusedName(name); ok {
		return Family{}, report.Problemf(report.Unmet, "%s is known and refused: %s", name, c.Reason)
	}
	return Family{}, report.Usagef("unknown image %q", name).
		WithWant("one of "+strings.Join(names, ", "), "").WithHint("invar image plan")
}

// arguments are the family's defaults with given in their place.
func (f Family) arguments(given map[string]string) (map[string]string, error) {
	values := f.defaults()
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if _, ok := values[name]; !ok {
			return nil, report.Usagef("image %s has no build argument %q", f.Name, name).
				WithWant("one of "+strings.Join(slices.Sorted(maps.Keys(values)), ", "), "").WithHint("invar image plan %s", f.Name)
		}
		values[name] = given[name]
	}
	return values, nil
}
