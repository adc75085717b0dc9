package cuda

import "github.com/invar-ops/invar/internal/version"

// DriverFor is the range of drivers that serve the runtime of a toolkit, which
// is linked into what it builds, whatever CUDA torch was built for. ok is false
// for a toolkit that is older than all that are known.
func DriverFor(toolkit string) (want string, ok bool, err error) {
	known, err := Load()
	if err != nil {
		return "", false, err
	}
	facts, ok := known.Toolkit(toolkit)
	return facts.Driver, ok, nil
}

// Serves reports whether a driver is in a range of DriverFor.
func Serves(want, driver string) bool { return version.Within(version.Driver, want, driver) }
