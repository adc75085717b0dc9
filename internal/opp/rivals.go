package opp

import (
	"bytes"
	"os"
	"regexp"
	"slices"
)

// A Rival is a library beside the one that an installation brings, with names
// that the installation is called by. All such libraries have one file name.
type Rival struct {
	Library string   `json:"library"`
	Via     string   `json:"via"`
	Wins    []string `json:"wins,omitempty"`  // names that it serves, since it comes first
	Loses   []string `json:"loses,omitempty"` // names that it has too, and never serves
}

// Rivals lists the libraries among candidates, but for own and CANN's, that
// have one of names, in the order of the lookup.
func Rivals(candidates []Candidate, own string, names []string) []Rival {
	var out []Rival
	at := map[string]int{}
	note := func(library string, wins bool, name string) {
		if library == own || library == "" {
			return
		}
		n, ok := at[library]
		if !ok {
			return // CANN's own, or not usable
		}
		if wins {
			out[n].Wins = append(out[n].Wins, name)
		} else {
			out[n].Loses = append(out[n].Loses, name)
		}
	}
	for _, c := range candidates {
		if _, seen := at[c.Path]; seen || c.Via == "CANN" || c.Path == own || !c.Usable() {
			continue
		}
		at[c.Path] = len(out)
		out = append(out, Rival{Library: c.Path, Via: c.Via})
	}
	for _, f := range Resolve(candidates, names...) {
		note(f.Library, true, f.Name)
		for _, s := range f.Shadowed {
			note(s, false, f.Name)
		}
	}
	return slices.DeleteFunc(out, func(r Rival) bool { return len(r.Wins)+len(r.Loses) == 0 })
}

// constantRE is an aclnn name that stands alone between two NUL bytes, as the
// string constant of a lookup does.
var constantRE = regexp.MustCompile(`\x00aclnn[A-Z][A-Za-z0-9_]*`)

// Called lists the aclnn functions that the library at path looks up, sorted:
// the names of which it holds both string constants, that of the function and
// that of its GetWorkspaceSize.
func Called(path string) ([]string, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for _, at := range constantRE.FindAllIndex(b, -1) {
		if at[1] < len(b) && b[at[1]] == 0 {
			seen[string(bytes.Clone(b[at[0]+1:at[1]]))] = true
		}
	}
	var out []string
	for name := range seen {
		if seen[name+GetWorkspaceSize] {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out, nil
}
