package invar

import (
	"context"
	"fmt"

	"github.com/invar-ops/invar/internal/plan"
	"github.com/invar-ops/invar/internal/store"
)

// Verdict says in words whether build would run step st of p, and because of what.
func (s Session) Verdict(p plan.Plan, st plan.Step, last *plan.Plan) string {
	switch st.Kind {
	case plan.Run, plan.Pack, plan.Wheel, plan.Prove:
		return s.artifactVerdict(st, last)
	case plan.Env:
		return "runs: no Python with torch was found"
	case plan.Toolkit:
		return "runs: --install-toolkit, and the toolkit is not there yet"
	case plan.ProbeIt:
		return "runs whenever something was installed"
	}
	if why := plan.Why(st, last); why != "" {
		return "runs: " + why
	}
	return fmt.Sprintf("skipped: inputs unchanged (%s)", st.Fingerprint[:12])
}

// artifactVerdict asks the store, which knows other builds than the last one.
func (s Session) artifactVerdict(st plan.Step, last *plan.Plan) string {
	_, why, err := store.At(s.Prefix).Lookup(context.Background(), st.Fingerprint)
	if err == nil && why == "" {
		return fmt.Sprintf("skipped: the store holds its output (%s)", st.Fingerprint[:12])
	}
	if changed := plan.Why(st, last); changed != "" {
		return "runs: " + changed
	}
	if err != nil {
		why = err.Error()
	}
	return "runs: " + why
}
