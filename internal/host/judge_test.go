package host

import (
	"slices"
	"strings"
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

// A conflict names both sides, each as exactly as it is known.
func TestConflictWithSoCVersionNamesBoth(t *testing.T) {
	t.Parallel()
	facts, err := From(strings.NewReader(`
	NPU ID                         Chip ID                        Chip Logic ID                  Chip Phy-ID                    Chip Name
	0                              0                              0                              0                              Ascend910

	NPU ID                         : 0
	NPU Name                       : 9362
	Chip ID                        : 0
	Chip Name                      : Ascend910
`))
	if err != nil {
		t.Fatal(err)
	}
	facts.Evidence = append(facts.Evidence, Evidence{Source: "SOC_VERSION", Asked: "SOC_VERSION", Answer: "ascend910b4", Understood: "ascend910b4"})
	v := Judge(facts)
	if want := []string{"ascend910_9362", "ascend910b4"}; v.State != Conflict || !slices.Equal(v.SoCs, want) {
		t.Errorf("got %s of %q, want a conflict of %q", v.State, v.SoCs, want)
	}
}
