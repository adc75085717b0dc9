package host

import (
	"testing"

	"github.com/invar-ops/invar/internal/host/chip"
)

// Every condition that judgement.yaml names must be one that is worked out: a
// misspelt one would never hold.
func TestConditionsExist(t *testing.T) {
	t.Parallel()
	rules, err := chip.Load()
	if err != nil {
		t.Fatal(err)
	}
	holds := newDocket(rules, Facts{}).conditions()
	for _, j := range rules.Judgements() {
		for _, c := range j.When {
			if _, ok := holds[c]; !ok {
				t.Errorf("rule %s needs %q, which is no condition", j.Rule, c)
			}
		}
		if j.Reason == "" {
			t.Errorf("rule %s has no reason", j.Rule)
		}
	}
}

// Nothing asked is not nothing there.
func TestNoEvidenceIsUnknown(t *testing.T) {
	t.Parallel()
	if v := Judge(Facts{}); v.State != Unknown || v.Target != "" || v.ExitCode() != 6 {
		t.Errorf("got %+v", v)
	}
}
