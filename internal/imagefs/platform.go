package imagefs

import (
	"fmt"
	"runtime"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/invar-ops/invar/internal/report"
)

// A candidate is one of the images behind a name.
type candidate struct {
	digest   v1.Hash
	platform v1.Platform
	tag      string // "" where the name tells enough
	index    int    // in manifest.json of a docker archive
}

// A wish is the platform that was asked for, or this host's.
type wish struct {
	v1.Platform
	asked bool
}

func platformOf(text string) (wish, error) {
	if text == "" {
		return wish{Platform: v1.Platform{OS: "linux", Architecture: runtime.GOARCH}}, nil
	}
	p, err := v1.ParsePlatform(text)
	if err != nil || p.OS == "" || p.Architecture == "" {
		return wish{}, report.Usagef("--platform %s: want OS/ARCH, as linux/arm64", text)
	}
	return wish{*p, true}, nil
}

// choose takes the image that is meant. It does not guess among several.
func choose(ref string, all []candidate, want wish, tag string) (candidate, error) {
	if tag != "" {
		named := slices.DeleteFunc(slices.Clone(all), func(c candidate) bool { return !sameTag(c.tag, tag) })
		if len(named) == 0 {
			return candidate{}, report.Usagef("%s holds no image %s", ref, tag).WithWant(tag, tags(all))
		}
		all = named
	}
	fit := slices.DeleteFunc(slices.Clone(all), func(c candidate) bool { return !c.platform.Satisfies(want.Platform) })
	if len(fit) == 0 && len(all) == 1 && !want.asked {
		fit = all // there is no choice, and nothing of it will run here
	}
	if exact := slices.DeleteFunc(slices.Clone(fit), func(c candidate) bool { return c.platform.Variant != want.Variant }); len(exact) > 0 {
		fit = exact // amd64, beside an amd64/v3 for newer CPUs
	}
	slices.SortStableFunc(fit, func(a, b candidate) int { return strings.Compare(a.digest.Hex, b.digest.Hex) })
	fit = slices.CompactFunc(fit, func(a, b candidate) bool { return a.digest == b.digest && a.index == b.index })
	switch len(fit) {
	case 1:
		return fit[0], nil
	case 0:
		return candidate{}, report.Problemf(report.Unmet, "%s has no image for %s", ref, want.Platform.String()).
			WithWant(want.Platform.String(), platforms(all)).WithHint("choose one with --platform")
	}
	slices.SortFunc(fit, func(a, b candidate) int { return strings.Compare(a.tag, b.tag) })
	return candidate{}, report.Usagef("%s holds %d images for %s", ref, len(fit), want.Platform.String()).
		WithWant("one image", tags(fit)).WithHint("name one as PATH:TAG, or its variant with --platform OS/ARCH/VARIANT")
}

// sameTag compares a tag with the whole names that archives have.
func sameTag(have, want string) bool {
	return have == want || strings.HasSuffix(have, ":"+want)
}

func platforms(all []candidate) string {
	var out []string
	for _, c := range all {
		if p := c.platform.String(); !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	if len(out) == 0 {
		return "none"
	}
	return strings.Join(out, ", ")
}

func tags(all []candidate) string {
	var out []string
	for _, c := range all {
		if c.tag == "" {
			c.tag = fmt.Sprintf("%.19s (without a tag)", c.digest)
		}
		out = append(out, c.tag)
	}
	return strings.Join(out, ", ")
}
