package probe

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/invar-ops/invar/internal/report"
)

// operators is level 3: each operator that the target names resolves by access
// (torch.ops is lazy, a listing proves nothing), with its schema and kernels.
func (p *prober) operators(context.Context) ([]report.Check, error) {
	var out []report.Check
	for _, o := range p.facts.Operators {
		out = append(out, p.operator(o))
	}
	return out, nil
}

func (p *prober) operator(o operatorFacts) report.Check {
	name := "operator " + o.Name
	if !o.Found {
		c := check(Operators, name, false, "torch.ops.batch_invariant_ops."+o.Name, firstNonEmpty(o.Error, "nothing"))
		c.Hint = "registered are: " + strings.Join(p.facts.Registered, ", ") + "; build both stages from one version: invar build --force"
		return c
	}
	if o.WantError != "" {
		return check(Operators, name, false, "a schema that torch can read in target.yaml", o.WantError)
	}
	// The wish is compared in torch's own spelling, so that spaces do not matter.
	if o.Want != "" && !slices.Contains(o.Schemas, o.Want) {
		c := check(Operators, name, false, o.Want, strings.Join(o.Schemas, "; "))
		c.Hint = "the wheel is of another version: invar build --force"
		return c
	}
	if c, ok := p.takes(o); !ok {
		return c
	}
	var missing []string
	for key, ok := range o.Keys {
		if !ok {
			missing = append(missing, key)
		}
	}
	slices.Sort(missing)
	if len(missing) > 0 {
		return check(Operators, name, false, "kernels for "+strings.Join(keys(o.Keys), ", "),
			fmt.Sprintf("none for %s", strings.Join(missing, ", ")))
	}
	return check(Operators, name, true, o.Want, "as expected, kernels for "+strings.Join(keys(o.Keys), ", "))
}

func keys(m map[string]bool) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

func firstNonEmpty(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}
