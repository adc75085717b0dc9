// Package wheel writes and reads Python wheels (PEP 427). What it writes is
// bit-identical for the same input: sorted members, fixed times and modes. It
// runs no Python and builds no extension; it packs files that are there.
package wheel

import (
	"fmt"
	"path"
	"regexp"
	"strings"

	"github.com/invar-ops/invar/internal/report"
)

// A Tag says where a wheel can be installed, e.g. py3-none-manylinux_2_28_x86_64.
type Tag struct {
	Python   string `json:"python"`   // "py3", "cp311", "py2.py3"
	ABI      string `json:"abi"`      // "none", "abi3"
	Platform string `json:"platform"` // "any", "manylinux_2_28_x86_64"
}

func (t Tag) String() string { return t.Python + "-" + t.ABI + "-" + t.Platform }

// each lists the simple tags that a compressed tag set stands for.
func (t Tag) each() []string {
	var out []string
	for py := range strings.SplitSeq(t.Python, ".") {
		for abi := range strings.SplitSeq(t.ABI, ".") {
			for p := range strings.SplitSeq(t.Platform, ".") {
				out = append(out, py+"-"+abi+"-"+p)
			}
		}
	}
	return out
}

var tagRE = regexp.MustCompile(`^[a-z0-9_]+(\.[a-z0-9_]+)*$`)

func (t Tag) check() error {
	for _, s := range []string{t.Python, t.ABI, t.Platform} {
		if !tagRE.MatchString(s) {
			return fmt.Errorf("%q is no wheel tag: want lower-case letters, digits and underscores", t.String())
		}
	}
	return nil
}

// A Name is a wheel's file name taken apart.
type Name struct {
	Distribution string // as in the file name: "batch_invariant_ops"
	Version      string
	Build        string // build number, "" mostly
	Tag          Tag
}

// ParseName takes the base name of a wheel file apart.
func ParseName(file string) (Name, error) {
	stem, ok := strings.CutSuffix(path.Base(file), ".whl")
	parts := strings.Split(stem, "-")
	if !ok || len(parts) < 5 || len(parts) > 6 {
		return Name{}, report.Problemf(report.Failed, "%s is no wheel name", path.Base(file)).
			WithWant("NAME-VERSION[-BUILD]-PYTHON-ABI-PLATFORM.whl", path.Base(file))
	}
	n := Name{Distribution: parts[0], Version: parts[1]}
	if len(parts) == 6 {
		n.Build = parts[2]
	}
	t := parts[len(parts)-3:]
	n.Tag = Tag{t[0], t[1], t[2]}
	return n, nil
}

var nameRuns = regexp.MustCompile(`[-_.]+`)

// escape is the form of a project name in file names (PEP 503, then - to _).
func escape(name string) string { return strings.ToLower(nameRuns.ReplaceAllString(name, "_")) }

// FileName is the name that a wheel of p with tag t must have.
func FileName(p Project, t Tag) string {
	return escape(p.Name) + "-" + p.Version + "-" + t.String() + ".whl"
}

// distInfo is the metadata folder inside the wheel.
func distInfo(p Project) string { return escape(p.Name) + "-" + p.Version + ".dist-info" }

// safeName reports why a member name must not be unpacked, or "".
func safeName(name string) string {
	switch {
	case name == "" || strings.HasPrefix(name, "/"):
		return "it is absolute or empty"
	case strings.ContainsAny(name, "\\\x00\n\r"):
		return "it holds a backslash or a control character"
	case path.Clean(name) != strings.TrimSuffix(name, "/"):
		return "it is not a plain relative path"
	case name == ".." || strings.HasPrefix(name, "../"):
		return "it leaves the folder"
	}
	return ""
}
