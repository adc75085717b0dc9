package opp

import (
	"runtime"
	"slices"
	"strings"
)

// GetWorkspaceSize ends the name of the first of the two functions of an
// operator. Both must be there; each is looked up by itself.
const GetWorkspaceSize = "GetWorkspaceSize"

// A Found says which library serves one name.
type Found struct {
	Name     string   `json:"name"`
	Library  string   `json:"library,omitempty"` // "" when no library has it
	Via      string   `json:"via,omitempty"`
	Shadowed []string `json:"shadowed,omitempty"` // libraries later in the order that have it too
}

// Resolve looks names up, each by itself: of two vendors the first may serve
// one operator and the second another.
func Resolve(candidates []Candidate, names ...string) []Found {
	out := make([]Found, 0, len(names))
	for _, name := range names {
		f := Found{Name: name}
		for _, c := range candidates {
			switch {
			case !c.Usable() || !c.Exports(name):
			case f.Library == "":
				f.Library, f.Via = c.Path, c.Via
			case c.Path != f.Library:
				f.Shadowed = append(f.Shadowed, c.Path)
			}
		}
		out = append(out, f)
	}
	return out
}

// Pair is the two names of an aclnn operator.
func Pair(operator string) []string { return []string{operator, operator + GetWorkspaceSize} }

// Split reports whether the two functions of an operator come from different
// libraries, or only one of them is there: a call would mix them.
func Split(found []Found, operator string) bool {
	var at []string
	for _, f := range found {
		if slices.Contains(Pair(operator), f.Name) {
			at = append(at, f.Library)
		}
	}
	return len(at) == 2 && at[0] != at[1]
}

// Hijacked lists the operators of CANN itself that a vendor's library exports
// too, and so takes over for every program that finds it: vendors come before
// built-ins for every name.
func Hijacked(vendor, builtin Candidate) []string {
	var out []string
	for _, n := range vendor.Names() {
		if strings.HasPrefix(n, "aclnn") && builtin.Exports(n) {
			out = append(out, n)
		}
	}
	return out
}

// hostArch is this machine's architecture as uname -m says it.
func hostArch() string {
	switch runtime.GOARCH {
	case "amd64":
		return "x86_64"
	case "arm64":
		return "aarch64"
	}
	return runtime.GOARCH
}
