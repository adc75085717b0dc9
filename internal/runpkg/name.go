package runpkg

import (
	"regexp"
	"strings"

	"github.com/invar-ops/invar/internal/report"
)

// These go into a shell script between double quotes and into file names, so
// nothing that a shell or a file system could read in its own way is let in.
var (
	nameRE     = regexp.MustCompile(`^[a-z0-9][a-z0-9._+-]{0,99}$`)
	versionRE  = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+!~-]{0,99}$`)
	platformRE = regexp.MustCompile(`^[a-z0-9]+\.[a-z0-9_]+$`)
)

// FileName is the file name of a run package: invar-ops-cpu-1.0.0-linux.x86_64.run
// for the name invar-ops-cpu, the version 1.0.0 and the platform linux.x86_64.
func FileName(name, version, platform string) string {
	return name + "-" + version + "-" + platform + ".run"
}

// Platform joins the operating system and the machine as uname -m prints it;
// goarch may also be a Go architecture name.
func Platform(goos, goarch string) string {
	switch goarch {
	case "amd64":
		goarch = "x86_64"
	case "arm64":
		goarch = "aarch64"
	}
	return goos + "." + goarch
}

func checkIdentity(m *Manifest) error {
	for _, c := range []struct {
		what, value string
		re          *regexp.Regexp
	}{
		{"name", m.Name, nameRE},
		{"version", m.Version, versionRE},
		{"platform", m.Platform, platformRE},
	} {
		if !c.re.MatchString(c.value) {
			return report.Usagef("%s %q cannot be part of a run package", c.what, c.value).
				WithWant("text that matches "+strings.Trim(c.re.String(), "^$"), c.value)
		}
	}
	return nil
}
