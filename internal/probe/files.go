package probe

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/invar-ops/invar/internal/install"
	"github.com/invar-ops/invar/internal/report"
)

// groups names the checks of level 1 that come from the receipt, by the kinds
// of fault that install.Check tells apart.
var groups = []struct {
	name, want string
	kinds      []string
}{
	{"receipt", "every file of the receipt with its digest, in the current generation", []string{"missing", "changed", "receipt", "unfinished"}},
	{"hook", "the hook in site-packages names this installation", []string{"hook"}},
	{"first on the path", "no other batch_invariant_ops before this one", []string{"shadowed"}},
}

// files is level 1: what lies on disk, without starting anything.
func (p *prober) files(ctx context.Context) ([]report.Check, error) {
	look := func(ctx context.Context, r install.Receipt, env []string) (install.Health, error) {
		return install.CheckIn(ctx, p.Root, r, env)
	}
	if p.Seen && !p.outside() {
		look = install.CheckSeen
	}
	h, err := look(ctx, p.receipt, p.Env)
	if err != nil {
		return nil, err
	}
	var out []report.Check
	for _, g := range groups {
		out = append(out, fromFaults(g.name, g.want, slices.DeleteFunc(slices.Clone(h.Faults), func(f install.Fault) bool {
			return !slices.Contains(g.kinds, f.Kind)
		})))
	}
	// A kind that no group names must not get lost.
	out = append(out, fromFaults("installation", "no other fault", slices.DeleteFunc(slices.Clone(h.Faults), known)))
	for _, e := range h.Extra {
		p.extra = append(p.extra, Observation{"file without a receipt", e})
	}
	out = slices.DeleteFunc(out, func(c report.Check) bool { return c.Name == "installation" && c.Status == report.Pass })
	out = append(out, p.record())
	if p.onNPU() {
		out = append(out, p.npuFiles()...)
	}
	libraries, err := p.libraries()
	return append(out, libraries...), err
}

func known(f install.Fault) bool {
	return slices.ContainsFunc(groups, func(g struct {
		name, want string
		kinds      []string
	},
	) bool {
		return slices.Contains(g.kinds, f.Kind)
	})
}

func fromFaults(name, want string, faults []install.Fault) report.Check {
	if len(faults) == 0 {
		return check(Files, name, true, want, "as it should be")
	}
	var got []string
	for _, f := range faults {
		got = append(got, fmt.Sprintf("%s: %s, want %s, got %s", f.Path, f.Kind, f.Want, f.Got))
	}
	c := check(Files, name, false, want, strings.Join(got, "\n"))
	c.Hint = faults[0].Hint
	return c
}

// within is path as a person sees it: below the generation where it is.
func (p *prober) within(path string) string {
	if rel, err := filepath.Rel(p.receipt.Dir(), path); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return path
}
