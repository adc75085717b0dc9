package explain

import (
	"context"
	"strings"
	"testing"
)

func diagnose(t *testing.T, log string) Diagnosis {
	t.Helper()
	d, err := Log(context.Background(), strings.NewReader(log), Options{})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// verdictOf is the verdict that an example of a rule of this level must have.
func verdictOf(l Level) Verdict {
	switch l {
	case Wrapper:
		return Elsewhere
	case Success, Progress:
		return Succeeded
	}
	return Found
}

// TestExamples holds every rule to its own example: no other rule may win
// there, and no text that the rule calls unlike may match it.
func TestExamples(t *testing.T) {
	t.Parallel()
	rules, err := Rules()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := loadSet(); err != nil {
		t.Fatal(err)
	}
	for _, r := range rules {
		t.Run(r.ID, func(t *testing.T) {
			t.Parallel()
			d := diagnose(t, r.Example)
			if want := verdictOf(r.Level); d.Verdict != want {
				t.Errorf("verdict %s (rule %q), want %s", d.Verdict, d.Rule, want)
			}
			if d.Verdict != Succeeded && d.Rule != r.ID {
				t.Errorf("rule %q won, want %s", d.Rule, r.ID)
			}
			for _, text := range r.Unlike {
				if d := diagnose(t, text); d.Rule == r.ID {
					t.Errorf("matches %q, which it is not", text)
				}
			}
		})
	}
}
