// Package pins knows which content may be trusted: what targets/<name>/sources.yaml
// says of published files, what a team has accepted into invar.lock, and what
// the user accepts now. It fetches nothing.
package pins

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/invar-ops/invar/internal/data"
	"github.com/invar-ops/invar/targets"
)

// Sources are the published files of one target.
type Sources struct {
	Token         string    `yaml:"token" json:"token"`         // the SoC in file names: "910b", "A3"
	Package       string    `yaml:"package" json:"package"`     // file name of the run package, with {token}, {version}, {arch}
	Extension     string    `yaml:"extension" json:"extension"` // file name of the wheel's sources
	Vendors       []string  `yaml:"vendors" json:"vendors"`     // vendor folders that packages of this kind have
	Kernels       []string  `yaml:"kernels" json:"kernels"`     // names of kernel folders that serve this target
	Addresses     []Address `yaml:"addresses" json:"addresses"` // folders, best first
	Versions      []Version `yaml:"versions" json:"versions"`
	Default       string    `yaml:"default" json:"default"` // version
	DefaultSource string    `yaml:"default_source" json:"default_source"`
	Contents      []Content `yaml:"contents" json:"contents"` // what is known of files
	Repairs       []Repair  `yaml:"repairs" json:"repairs,omitempty"`
}

// An Address is a folder where files are published.
type Address struct {
	URL    string `yaml:"url" json:"url"`
	Source string `yaml:"source" json:"source"`
}

// A Version is a published release.
type Version struct {
	Version string `yaml:"version" json:"version"`
	Source  string `yaml:"source" json:"source"`
}

// A Content is what is known of a published file.
type Content struct {
	Name   string `yaml:"name" json:"name"`
	SHA256 string `yaml:"sha256" json:"sha256"`
	Size   int64  `yaml:"size" json:"size"` // 0 when nobody has told
	Source string `yaml:"source" json:"source"`
}

// A Repair is a known defect of a release that a link puts right. Link lies
// below the folder of the installation; To is seen from Link's folder. {vendor}
// and {opp} (the operators of CANN itself) stand for what is found.
type Repair struct {
	Version string `yaml:"version" json:"version"`
	Link    string `yaml:"link" json:"link"`
	To      string `yaml:"to" json:"to"`
	Why     string `yaml:"why" json:"why"`
	Source  string `yaml:"source" json:"source"`
}

// Of reads the sources of the target called name; ok is false for targets
// whose operators invar compiles itself.
func Of(name string) (s Sources, ok bool, err error) {
	file := path.Join(name, "sources.yaml")
	b, err := fs.ReadFile(targets.FS, file)
	if err != nil {
		return s, false, nil //nolint:nilerr // the file is embedded or it is not there
	}
	s, err = Decode("targets/"+file, b)
	return s, err == nil, err
}

var digestRE = regexp.MustCompile(`^[0-9a-f]{64}$`)

// Decode reads one sources.yaml and checks what a decoder cannot.
func Decode(file string, b []byte) (Sources, error) {
	var s Sources
	if err := data.Decode(file, b, &s); err != nil {
		return s, err
	}
	if err := s.check(); err != nil {
		return s, fmt.Errorf("%s: %w", file, err)
	}
	return s, nil
}

func (s Sources) check() error {
	switch {
	case s.Token == "" || s.Package == "" || s.Extension == "" || len(s.Kernels) == 0 || len(s.Vendors) == 0:
		return fmt.Errorf("token, package, extension, kernels and vendors are needed")
	case !slices.ContainsFunc(s.Versions, func(v Version) bool { return v.Version == s.Default }):
		return fmt.Errorf("default %q is none of the versions", s.Default)
	}
	for _, a := range s.Addresses {
		if !strings.HasPrefix(a.URL, "https://") || !strings.HasSuffix(a.URL, "/") || a.Source == "" {
			return fmt.Errorf("addresses: %q: want https, a slash at the end and a source", a.URL)
		}
	}
	for _, c := range s.Contents {
		if c.Name == "" || !digestRE.MatchString(c.SHA256) || c.Source == "" {
			return fmt.Errorf("contents: %q: want a name, a SHA-256 in lower-case hex and a source", c.Name)
		}
	}
	return nil
}

// PackageName is the file name of the run package for version and arch.
func (s Sources) PackageName(version, arch string) string {
	return strings.NewReplacer("{token}", s.Token, "{version}", version, "{arch}", arch).Replace(s.Package)
}

// ExtensionName is the file name of the wheel's sources.
func (s Sources) ExtensionName(version string) string {
	return strings.ReplaceAll(s.Extension, "{version}", version)
}

// Known reports whether version has been published, as far as is known.
func (s Sources) Known(version string) bool {
	return slices.ContainsFunc(s.Versions, func(v Version) bool { return v.Version == version })
}

// URLs are the places where the file called name is published.
func (s Sources) URLs(name string) []string {
	var out []string
	for _, a := range s.Addresses {
		out = append(out, a.URL+name)
	}
	return out
}

// RepairsOf lists the known repairs of version.
func (s Sources) RepairsOf(version string) []Repair {
	var out []Repair
	for _, r := range s.Repairs {
		if r.Version == version {
			out = append(out, r)
		}
	}
	return out
}
