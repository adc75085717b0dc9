package imagefs

import (
	"path"
	"regexp"
	"strings"
)

// How much of a file a probe needs.
type need int

const (
	nothing need = iota // its name and size, which the tree knows
	hole                // that it is there: a file of its size without content
	whole               // its content
)

// small is the size up to which a file outside the folders below is kept whole
// whatever it is: settings, scripts, version files, links to libraries.
const small = 64 << 10

// bulk is the size from which a library inside site-packages is not looked into:
// torch and what it brings are in the process by name when stage 2 is opened.
const bulk = 16 << 20

var (
	siteRE  = regexp.MustCompile(`(?:^|/)(?:site|dist)-packages/`)
	ownRE   = regexp.MustCompile(`(?:^|/)(?:env/[0-9a-f]{12}|store/sha256|store/actions)(?:/|$)`)
	binRE   = regexp.MustCompile(`(?:^|/)s?bin/[^/]+$`)
	proseRE = regexp.MustCompile(`^usr/(?:share|include|src)/|^var/(?:lib|cache)/|(?:^|/)(?:__pycache__|man|doc|node_modules)/|^usr/lib/python3[^/]*/|/lib/python3\.[0-9]+/(?:[^s]|s[^i])`)
)

// needOf says what a probe from outside may read of the file p.
func needOf(p string, size int64) need {
	name := path.Base(p)
	switch {
	case ownRE.MatchString(p):
		return whole // of a prefix of invar
	case siteRE.MatchString(p):
		return needInSite(p, size)
	case strings.Contains(name, ".so"), strings.HasPrefix(p, "etc/"), name == "libascend_hal.so":
		return whole
	case binRE.MatchString(p):
		if size > bulk && !strings.HasPrefix(name, "python") {
			return hole
		}
		return whole
	case proseRE.MatchString(p):
		return nothing
	case size <= small:
		return whole
	}
	return nothing
}

// needInSite is needOf for a file in site-packages.
func needInSite(p string, size int64) need {
	rel := p[siteRE.FindStringIndex(p)[1]:]
	top, rest, nested := strings.Cut(rel, "/")
	switch {
	case !nested, strings.HasSuffix(top, ".dist-info"), strings.HasSuffix(top, ".egg-info"),
		strings.HasPrefix(top, "batch_invariant_ops"), strings.Contains(rest, "_cann_ops_custom/"):
		if size > bulk && !strings.HasPrefix(top, "batch_invariant_ops") {
			return hole
		}
		return whole
	case strings.Contains(path.Base(rest), ".so"):
		if size > bulk || strings.HasPrefix(top, "torch") && strings.HasPrefix(rest, "lib/") {
			return hole
		}
		return whole
	}
	return nothing
}
