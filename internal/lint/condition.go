package lint

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/invar-ops/invar/internal/version"
)

// A truth is yes, no or unknown.
type truth int

const (
	no truth = iota
	unknown
	yes
)

func of(b bool) truth {
	if b {
		return yes
	}
	return no
}

// condition compares one fact with what a rule wants of it.
func condition(fact, want string, f Facts) (truth, error) {
	switch {
	case fact == "version":
		return inVersions(want, f.Version)
	case fact == "family":
		if len(f.Families) == 0 {
			return unknown, nil
		}
		return of(slices.Contains(f.Families, want)), nil
	case want == "without invar":
		v, ok := f.Values[fact]
		return of(ok && v != "unset" && !slices.Contains(strings.Split(v, ","), "invar")), nil
	case want == "> devices":
		return moreThanDevices(f)
	}
	have, known := f.Values[fact]
	if alternatives := strings.Split(want, "|"); len(alternatives) > 1 {
		return if_(known, of(slices.Contains(alternatives, have))), nil
	}
	op, value := operator(want)
	switch op {
	case "=":
		return if_(known, of(have == value)), nil
	case "!=":
		return if_(known, of(have != value)), nil
	}
	limit, err := strconv.ParseFloat(value, 64)
	if err != nil {
		return no, fmt.Errorf("%s %q: %w", fact, want, err)
	}
	if !known {
		return unknown, nil
	}
	number, err := strconv.ParseFloat(strings.TrimSuffix(have, "a"), 64)
	if err != nil {
		return unknown, nil //nolint:nilerr // "auto" is no number: it stays open
	}
	return of(compare(op, number, limit)), nil
}

func if_(known bool, t truth) truth {
	if !known {
		return unknown
	}
	return t
}

func operator(want string) (op, value string) {
	for _, op := range []string{">=", "<=", "!=", ">", "<", "="} {
		if rest, ok := strings.CutPrefix(want, op); ok {
			return op, strings.TrimSpace(rest)
		}
	}
	return "=", want
}

func compare(op string, a, b float64) bool {
	switch op {
	case ">":
		return a > b
	case ">=":
		return a >= b
	case "<":
		return a < b
	default:
		return a <= b
	}
}

// moreThanDevices compares the number of ranks with the list of visible devices.
func moreThanDevices(f Facts) (truth, error) {
	list, ok := f.Values["visible_devices"]
	ranks, err := strconv.Atoi(f.Values["tp"])
	if !ok || err != nil || list == "" || list == "all" {
		return no, nil //nolint:nilerr // nothing to compare is no conflict
	}
	return of(ranks > len(strings.Split(list, ","))), nil
}

// inVersions reports whether a version is in a range of affected releases. A
// development build contains fixes that are in no release yet: whether a fix
// of the next release is among them is unknown, and so is a build without tags.
func inVersions(want, have string) (truth, error) {
	r, err := version.ParseRange(version.PEP440, want, version.AllowPre)
	if err != nil {
		return no, err
	}
	v, err := version.Parse(version.PEP440, have)
	if err != nil {
		return unknown, nil //nolint:nilerr // no version, or none that says anything
	}
	if strings.HasPrefix(have, "0.1.dev") { // a source build without tags
		return unknown, nil
	}
	inside := r.Check(v) == nil
	if !strings.Contains(have, ".dev") && !strings.Contains(have, "rc") {
		return of(inside), nil
	}
	// The build lies between its base and the release after the next one.
	parts := strings.SplitN(have, ".", 3)
	minor, err := strconv.Atoi(parts[1])
	if err != nil {
		return unknown, nil //nolint:nilerr // as above
	}
	next, err := version.Parse(version.PEP440, fmt.Sprintf("%s.%d.0", parts[0], minor+1))
	if err != nil {
		return unknown, nil //nolint:nilerr // as above
	}
	if (r.Check(next) == nil) != inside {
		return unknown, nil
	}
	return of(inside), nil
}
