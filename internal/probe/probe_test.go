package probe

import (
	"testing"

	"github.com/invar-ops/invar/internal/report"
)

// TestGood probes a real installation to the deepest level.
func TestGood(t *testing.T) {
	t.Parallel()
	i := setUp(t, makeBundle(t, "good"))
	res, err := i.probe(t, Deepest)
	if err != nil {
		for _, c := range res.Checks {
			if c.Status != report.Pass {
				t.Errorf("%+v", c)
			}
		}
		t.Fatal(err)
	}
	t.Logf("%q", res.Summary)
	for _, c := range res.Checks {
		t.Logf("%d %-28s %s | %s", c.Level, c.Name, c.Status, c.Got)
	}
	for _, l := range res.Levels {
		t.Logf("%d %s %s %v", l.Level, l.Name, l.Status, l.Elapsed)
	}
	for _, o := range res.Observations {
		t.Logf("%s: %s", o.Name, o.Text)
	}
	if res.Proved != Deepest {
		t.Errorf("proved %d, want %d", res.Proved, Deepest)
	}
}
