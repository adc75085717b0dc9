package probe

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/invar-ops/invar/internal/run"
	"github.com/invar-ops/invar/scripts"
)

// TestDefects gives the quick sweep products with one defect each: every kind
// must be found, by the contexts that are there for it, and a product without
// one must not. In the same process it compares what is said about torch.mm
// with a plain loop.
func TestDefects(t *testing.T) {
	heavy(t)
	t.Parallel()
	i := setUp(t, makeBundle(t, "good"))
	s, err := LoadSchedule("quick")
	if err != nil {
		t.Fatal(err)
	}
	in, err := json.Marshal(map[string]any{"schedule": s})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := scripts.Unpack(dir); err != nil {
		t.Fatal(err)
	}
	script, err := filepath.Abs("testdata/defects.py")
	if err != nil {
		t.Fatal(err)
	}
	res, err := run.System{}.Run(t.Context(), run.Cmd{
		Argv: []string{i.py.Exe, script, dir}, Env: append(cleanEnv(), "OMP_WAIT_POLICY=PASSIVE"), Stdin: bytes.NewReader(in),
	})
	if err != nil {
		t.Fatalf("%v\n%s", err, res.Stderr)
	}
	var got struct {
		Defects   []caseFacts `json:"defects"`
		Observed  []int       `json:"observed"`
		PlainLoop []int       `json:"plain_loop"`
	}
	if err := json.Unmarshal(res.Stdout, &got); err != nil {
		t.Fatalf("%v\n%s", err, res.Stdout)
	}
	found := map[string]caseFacts{}
	for _, d := range got.Defects {
		found[d.Operator] = d
	}
	for name, context := range map[string]string{
		"one row": "m=1,", "threshold": "m=255,", "odd rows": "m=3,", "last tile": "m=5,", "neighbours": "nan", "scale": "m=129,", "address": "offset",
		"stride": "padded", "weights": "transposed weights", "threads": "2 threads", "chance": "m=",
	} {
		d := found[name]
		if d.Differ == 0 || !slices.ContainsFunc(contexts(d), func(c string) bool { return strings.Contains(c, context) }) {
			t.Errorf("%s: %d of %d pairs differ in %v; want some where %q", name, d.Differ, d.Pairs, d.Contexts, context)
		}
		if !strings.Contains(difference(d), "pairs differ, at m = ") {
			t.Errorf("%s: %s", name, difference(d))
		}
	}
	if d := found["none"]; d.Differ != 0 || len(vacuous(d)) != 0 || d.Pairs == 0 {
		t.Errorf("the invariant product: %d of %d pairs differ, doubts %v", d.Differ, d.Pairs, vacuous(d))
	}
	for name, text := range map[string]string{"zeros": "every result holds the same bits; no bit changes when the reduction runs in another order", "one result": "different results"} {
		if doubts := strings.Join(vacuous(found[name]), "; "); found[name].Differ != 0 || !strings.Contains(doubts, text) {
			t.Errorf("%s: doubts %q, want %q", name, doubts, text)
		}
	}
	if !slices.Equal(got.Observed, got.PlainLoop) {
		t.Errorf("torch.mm differs at %v by the sweep and at %v by a plain loop", got.Observed, got.PlainLoop)
	}
	t.Logf("torch.mm differs at m = %v", got.PlainLoop)
}

func contexts(d caseFacts) []string {
	var out []string
	for c := range d.Contexts {
		out = append(out, c)
	}
	return out
}
