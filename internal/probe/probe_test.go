package probe

import (
	"bytes"
	"slices"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/invar-ops/invar/internal/report"
)

// TestGood probes real installations to the deepest level: one wheel, in the
// newest torch and in the oldest that it is for.
func TestGood(t *testing.T) {
	heavy(t)
	t.Parallel()
	for _, torch := range []string{latest, floor} {
		t.Run(torch, func(t *testing.T) {
			t.Parallel()
			good(t, setUpIn(t, privatePython(t, torch), makeBundle(t, "good")))
		})
	}
}

func good(t *testing.T, i *fixture) {
	t.Helper()
	res, err := i.probe(t, Deepest)
	for _, c := range res.Checks {
		if c.Status != report.Pass || c.Want == "" || c.Got == "" {
			t.Errorf("level %d, %s: %s, want %q, got %q %s", c.Level, c.Name, c.Status, c.Want, c.Got, c.Reason)
		}
	}
	if err != nil || res.Proved != Deepest {
		t.Fatalf("proved %d of %d: %v", res.Proved, Deepest, err)
	}
	t.Logf("%q", res.Summary)
	c := res.Coverage
	if len(c.Operators) != 13 || len(c.Functions) != 12 || len(c.Dtypes) != 3 || len(c.Batches) != 21 || c.Pairs < 1e6 || c.Differ != 0 || c.Control == 0 {
		t.Errorf("coverage %+v", c)
	}
	flags, err := cpuFlags("/proc/cpuinfo")
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range i.levels(t) {
		if swept := slices.Contains(c.ISALevels, l); swept != runsOn(i.target(t).Stage1, l, flags) {
			t.Errorf("ISA level %s: swept %t, against what /proc/cpuinfo lists", l, swept)
		}
	}
	schema(t, res)
	for _, l := range res.Levels {
		t.Logf("%d %s %s %v", l.Level, l.Name, l.Status, l.Elapsed)
	}
}

// schema validates what --json prints for res.
func schema(t *testing.T, res Result) {
	t.Helper()
	var b bytes.Buffer
	if err := report.WriteJSON(&b, "probe", res, nil); err != nil {
		t.Fatal(err)
	}
	v, err := jsonschema.UnmarshalJSON(&b)
	if err != nil {
		t.Fatal(err)
	}
	s, err := jsonschema.NewCompiler().Compile("../../docs/schema/invar.probe.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Validate(v); err != nil {
		t.Errorf("%v", err)
	}
}
