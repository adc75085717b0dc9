package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/invar-ops/invar/internal/version"
)

// Have is what is installed, by column of the matrix; empty is not there.
type Have map[string]string

// A Change is one step towards a row.
type Change struct {
	Name string `json:"name"`
	From string `json:"from,omitempty"` // empty when it is not there
	To   string `json:"to"`
	// Soft changes are recommended and not needed: another post-release or
	// patch of the same release.
	Soft bool `json:"soft,omitempty"`

	component Component
}

// An Advice is one row and the way there.
type Advice struct {
	Row      string   `json:"row"` // version of vllm-ascend
	Changes  []Change `json:"changes"`
	Notes    []string `json:"notes,omitempty"`
	Commands []string `json:"commands,omitempty"`

	hard, weight, soft, place int
	row                       Row
}

// nearest orders rows by how little has to change: the number of changes, then
// how much work they are, then the recommended ones, then new before old.
func (m Matrix) nearest(rows []Row, have Have) []Advice {
	var out []Advice
	for i, r := range rows {
		a := m.advise(r, have)
		a.place = i
		if r.VllmAscend == "main" && have["vllm_ascend"] == "" {
			a.place = len(rows) // a release goes first where both are as near
		}
		out = append(out, a)
	}
	slices.SortStableFunc(out, func(a, b Advice) int {
		return cmp.Or(cmp.Compare(a.hard, b.hard), cmp.Compare(a.weight, b.weight),
			cmp.Compare(a.soft, b.soft), cmp.Compare(a.place, b.place))
	})
	return out
}

func (m Matrix) advise(r Row, have Have) Advice {
	a := Advice{Row: r.VllmAscend, row: r}
	for _, c := range m.Components {
		want, got := r.value(c.Key), have[c.Key]
		if want == "" || (got == "" && !c.Needed) {
			continue
		}
		fits, soft, note := m.fits(r, c, want, got)
		if note != "" {
			a.Notes = append(a.Notes, note)
		}
		if fits {
			continue
		}
		a.Changes = append(a.Changes, Change{Name: c.Name, From: got, To: want, Soft: soft, component: c})
		if soft {
			a.soft++
		} else {
			a.hard, a.weight = a.hard+1, a.weight+c.Weight
		}
	}
	return a
}

// fits compares one cell with what is installed.
func (m Matrix) fits(r Row, c Component, want, got string) (ok, soft bool, note string) {
	if got == "" {
		return false, false, ""
	}
	if c.Key == "python" {
		return version.Within(version.PEP440, want, got), false, ""
	}
	g, err := version.Parse(c.kind(), got)
	if err != nil {
		return false, false, ""
	}
	if g.Untagged() {
		return true, false, fmt.Sprintf("%s %s comes from a checkout without tags: only the commit %s tells what it is", c.Name, got, g.Commit())
	}
	if want == "main" {
		return m.isMain(g), false, ""
	}
	w := version.MustParse(c.kind(), want) // checked when the data was loaded
	for _, o := range m.others(r.VllmAscend, c.Key) {
		if version.Equal(g, w) || version.Equal(g, version.MustParse(c.kind(), o.Value)) {
			return true, false, fmt.Sprintf("two references disagree about %s of %s: the table says %s, %s say %s; either is taken as good", c.Name, r.VllmAscend, want, o.Source, o.Value)
		}
	}
	if version.Equal(g, w) {
		return true, false, ""
	}
	if fromSource(c, g) && g.Base(3) == w.Base(3) {
		return true, false, ""
	}
	return false, m.near(c, g, w), ""
}

// near says that got is the same release in a later update.
func (m Matrix) near(c Component, got, want version.Version) bool {
	if got.IsPre() != want.IsPre() {
		return false
	}
	switch c.Key {
	case "torch_npu", "triton":
		return got.Base(3) == want.Base(3)
	case "cann":
		return got.Base(2) == want.Base(2) && version.Less(want, got)
	}
	return false
}

// fromSource: a checkout of vLLM or vllm-ascend is judged by its release, as
// 0.11.0rc1.dev356+ge98543267 belongs to 0.11.
func fromSource(c Component, v version.Version) bool {
	return strings.HasPrefix(c.Key, "vllm") && v.Commit() != ""
}

// isMain: a checkout that is newer than every released row is main.
func (m Matrix) isMain(v version.Version) bool {
	for _, r := range m.Rows {
		if r.VllmAscend != "main" && !version.Less(version.MustParse(version.PEP440, r.VllmAscend), v) {
			return false
		}
	}
	return v.Commit() != ""
}

// Phrase is the advice in one line.
func (a Advice) Phrase() string {
	var parts []string
	for _, c := range a.Changes {
		switch {
		case c.From == "":
			parts = append(parts, fmt.Sprintf("%s %s (not installed)", c.Name, c.To))
		case c.Soft:
			parts = append(parts, fmt.Sprintf("%s %s (recommended, has %s)", c.Name, c.To, c.From))
		default:
			parts = append(parts, fmt.Sprintf("%s %s instead of %s", c.Name, c.To, c.From))
		}
	}
	if len(parts) == 0 {
		return "nothing to change"
	}
	return strings.Join(parts, ", ")
}
