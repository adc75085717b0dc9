package released

import (
	"slices"

	"github.com/invar-ops/invar/internal/target"
	"github.com/invar-ops/invar/internal/version"
)

// Functions lists the functions behind the operators of t in the given release
// of them, as far as their names are known.
func Functions(t target.Target, release string) []string {
	var out []string
	for _, o := range t.Operators {
		if before(release, o.FunctionsSince) {
			continue // that release calls others, whose names are not known
		}
		for _, f := range o.Functions {
			if !slices.Contains(out, f) {
				out = append(out, f)
			}
		}
	}
	return out
}

// before reports whether release is older than since. A release without a
// version that can be read is taken for a new one.
func before(release, since string) bool {
	if since == "" {
		return false
	}
	a, errA := version.Parse(version.PEP440, release)
	b, errB := version.Parse(version.PEP440, since)
	return errA == nil && errB == nil && version.Less(a, b)
}
