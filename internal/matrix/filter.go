package matrix

import (
	"slices"
	"strings"

	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/target"
)

// A Filter chooses rows. Values of one field are alternatives, an empty field
// lets all through.
type Filter struct {
	Targets, Arches, Systems, Pythons, Torches []string

	Images bool // only combinations that invar image build makes
}

// field is one column that can be asked for.
type field struct {
	flag string
	want []string
	of   func(Row) string
}

// Arch is the architecture's name in this matrix, for the kernel's name or GitHub's.
func Arch(name string) string {
	switch name {
	case "x86_64", "x64":
		return "amd64"
	case "aarch64":
		return "arm64"
	}
	return name
}

func (f Filter) fields() []field {
	var arches []string
	for _, a := range f.Arches {
		arches = append(arches, Arch(a))
	}
	return []field{
		{"target", f.Targets, func(r Row) string { return r.Target }},
		{"arch", arches, func(r Row) string { return r.Arch }},
		{"os", f.Systems, func(r Row) string { return r.OS }},
		{"python", f.Pythons, func(r Row) string { return r.Python }},
		{"torch", f.Torches, func(r Row) string { return r.Torch }},
	}
}

// Apply returns the rows that f chooses. A value that no row has, and values
// that no row has together, are errors that name what there is: a job that
// silently builds nothing would pass.
func (f Filter) Apply(rows []Row) ([]Row, error) {
	for _, x := range f.fields() {
		known := column(rows, x.of)
		for _, w := range x.want {
			if slices.ContainsFunc(known, func(v string) bool { return matches(v, w) }) {
				continue
			}
			if c, ok := target.RefusedName(w); ok && x.flag == "target" {
				return nil, report.Problemf(report.Unmet, "%s is known and refused: %s", w, c.Reason)
			}
			return nil, report.Usagef("--%s %q is in no row of the matrix", x.flag, w).
				WithWant("one of "+strings.Join(known, ", "), "").WithHint("invar ci matrix --help")
		}
	}
	left := rows
	if f.Images {
		left = slices.DeleteFunc(slices.Clone(left), func(r Row) bool { return !r.Image })
	}
	for _, x := range f.fields() {
		next := slices.DeleteFunc(slices.Clone(left), func(r Row) bool {
			return len(x.want) > 0 && !slices.ContainsFunc(x.want, func(w string) bool { return matches(x.of(r), w) })
		})
		if len(next) == 0 {
			return nil, report.Usagef("--%s %s is not built with the rest", x.flag, strings.Join(x.want, ", ")).
				WithWant("one of "+strings.Join(column(left, x.of), ", "), "").WithHint("leave one of the filters out")
		}
		left = next
	}
	return left, nil
}

// matches: a value itself, or the first parts of its version (2.10 is 2.10.0).
func matches(value, want string) bool {
	return want != "" && (value == want || strings.HasPrefix(value, want+"."))
}

// column lists the values of a field, each once, in the order of the rows.
func column(rows []Row, of func(Row) string) []string {
	var out []string
	for _, r := range rows {
		if v := of(r); !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	return out
}
