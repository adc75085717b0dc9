package probe

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/invar-ops/invar/internal/install"
	"github.com/invar-ops/invar/internal/report"
)

var everyOutcome = Result{
	Target: "cpu", Prefix: "/p", Python: "/py", Generation: 2, Proved: 1,
	Levels: []Level{{Level: 1, Name: "files", Status: report.Pass}, {Level: 2, Name: "import", Status: report.Fail, Reason: "import: no module | x"}, {Level: 3, Name: "operators", Status: report.Skip, Reason: "level 2 failed"}},
	Checks: []report.Check{
		{Level: 1, Name: "receipt", Status: report.Pass, Want: "w", Got: "g"},
		{Level: 2, Name: "import # x", Status: report.Fail, Want: "a\nb", Got: "100% \"c\"", Hint: "do: it, now"},
		{Level: 2, Name: "control", Status: report.Unclear, Reason: "could not have failed"},
		{Level: 3, Name: "operators", Status: report.Skip, Reason: "level 2\nfailed"},
	},
	Summary: []string{"one", "two"},
}

func TestTAP(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	if err := WriteTAP(&b, everyOutcome); err != nil {
		t.Fatal(err)
	}
	want := "TAP version 14\n1..4\n" +
		"ok 1 - level 1 receipt\n" +
		"not ok 2 - level 2 import \\# x\n  ---\n  status: \"fail\"\n  want: \"a\\nb\"\n  got: \"100% \\\"c\\\"\"\n  hint: \"do: it, now\"\n  ...\n" +
		"not ok 3 - level 2 control\n  ---\n  status: \"inconclusive\"\n  reason: \"could not have failed\"\n  ...\n" +
		"ok 4 - level 3 operators # SKIP level 2 failed\n"
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

func TestSARIF(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	if err := WriteSARIF(&b, everyOutcome, "1.0.0", ".github/workflows/check.yml"); err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Runs []struct {
			Results []struct {
				Kind, Level, RuleID string
				Locations           []struct {
					PhysicalLocation struct{ ArtifactLocation struct{ URI string } }
				}
			}
		}
	}
	if err := json.Unmarshal(b.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, r := range doc.Runs[0].Results {
		if len(r.Locations) != 1 || r.Locations[0].PhysicalLocation.ArtifactLocation.URI != ".github/workflows/check.yml" {
			t.Errorf("%s is at %+v: code scanning refuses it", r.RuleID, r.Locations)
		}
		kinds = append(kinds, r.Kind+" "+r.Level)
	}
	if got := strings.Join(kinds, ", "); got != "pass none, fail error, open none, notApplicable none" {
		t.Errorf("%s\n%s", got, b.String())
	}
}

func TestGitHub(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	if err := WriteAnnotations(&b, everyOutcome); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	if len(lines) != 2 || !strings.HasPrefix(lines[0], "::error title=probe level 2::") || !strings.Contains(lines[0], "100%25") || !strings.HasPrefix(lines[1], "::warning ") {
		t.Errorf("%q", lines)
	}
	b.Reset()
	if err := WriteSummary(&b, everyOutcome); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), `| 2 | import | import: no module \| x **fail** |`) || !strings.Contains(b.String(), "proved to level 1 of 7") {
		t.Errorf("%s", b.String())
	}
}

func TestBaseline(t *testing.T) {
	t.Parallel()
	rec := install.Receipt{Target: "cpu", Contract: "c/1", Python: install.Env{Version: "3.11.2", Torch: "2.15.0"}, RunPackage: install.Artifact{Name: "a.run", SHA256: "1"}, Wheel: install.Artifact{Name: "b.whl", SHA256: "2"}}
	base := BaselineOf(rec, everyOutcome)
	var b bytes.Buffer
	if err := base.Write(&b); err != nil {
		t.Fatal(err)
	}
	read, err := ReadBaseline(bytes.NewReader(b.Bytes()))
	if err != nil || len(read.Drifts(base)) != 0 {
		t.Errorf("%v, %v: it drifts from itself", err, read.Drifts(base))
	}
	other := rec
	other.Wheel.SHA256, other.Python.Torch = "3", "2.10.0"
	shallow := everyOutcome
	shallow.Levels = everyOutcome.Levels[:1]
	drifts := base.Drifts(BaselineOf(other, shallow))
	var what []string
	for _, d := range drifts {
		what = append(what, d.What)
	}
	if got := strings.Join(what, ", "); got != "torch, wheel, level 2, level 3" {
		t.Errorf("drifts %s", got)
	}
	for _, bad := range []string{"", "{}", `{"schema": 2}`, `{"schema": 1, "more": 1}`} {
		if _, err := ReadBaseline(strings.NewReader(bad)); err == nil {
			t.Errorf("%q is a baseline", bad)
		}
	}
}
