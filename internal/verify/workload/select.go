package workload

import (
	"slices"
	"strings"

	"github.com/invar-ops/invar/internal/report"
)

// Select resolves the names of presets and workloads, in the order of the data,
// each once. With count > 0 every workload sends that many prompts.
func Select(preset string, names []string, count int) ([]Workload, error) {
	all, err := All()
	if err != nil {
		return nil, err
	}
	presets, err := Presets()
	if err != nil {
		return nil, err
	}
	want := slices.Clone(names)
	if len(names) == 0 {
		i := slices.IndexFunc(presets, func(p Preset) bool { return p.Name == preset })
		if i < 0 {
			return nil, report.Usagef("unknown preset %q", preset).WithHint("presets: %s", list(presets, func(p Preset) string { return p.Name }))
		}
		want = presets[i].Workloads
	}
	var out []Workload
	for _, name := range want {
		i := slices.IndexFunc(all, func(w Workload) bool { return w.Name == name })
		if i < 0 {
			return nil, report.Usagef("unknown workload %q", name).WithHint("workloads: %s", list(all, func(w Workload) string { return w.Name }))
		}
		if slices.ContainsFunc(out, func(w Workload) bool { return w.Name == name }) {
			continue
		}
		w := all[i]
		if count > 0 {
			w.Prompts.Count = count
		}
		out = append(out, w)
	}
	return out, nil
}

func list[T any](all []T, name func(T) string) string {
	out := make([]string, len(all))
	for i, x := range all {
		out[i] = name(x)
	}
	return strings.Join(out, ", ")
}
