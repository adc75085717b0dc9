package probe

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/target"
)

func TestJudge(t *testing.T) {
	t.Parallel()
	pass, fail := report.Check{Name: "a", Status: report.Pass}, report.Check{Name: "b", Status: report.Fail, Got: "first line\nsecond"}
	unclear, skip := report.Check{Name: "c", Status: report.Unclear, Reason: "blind"}, report.Check{Name: "d", Status: report.Skip, Reason: "no GPU"}
	for _, c := range []struct {
		name   string
		checks []report.Check
		status report.Status
		reason string
	}{
		{"all passed", []report.Check{pass, pass}, report.Pass, ""},
		{"a failure outweighs doubt", []report.Check{unclear, fail, pass}, report.Fail, "b: first line"},
		{"two failures", []report.Check{fail, fail}, report.Fail, "b: first line (and 1 more)"},
		{"doubt outweighs passes", []report.Check{pass, unclear, skip}, report.Unclear, "c: blind"},
		{"skipped as a whole", []report.Check{skip}, report.Skip, "no GPU"},
		{"skipped in part", []report.Check{skip, pass}, report.Pass, ""},
		{"nothing checked", nil, report.Unclear, "nothing was checked"},
	} {
		if l := judge(1, "x", c.checks, 0); l.Status != c.status || l.Reason != c.reason {
			t.Errorf("%s: %s %q, want %s %q", c.name, l.Status, l.Reason, c.status, c.reason)
		}
	}
}

// levels writes outcomes as one letter a level: p, f, u, s.
func levels(outcomes string) Result {
	names := map[rune]report.Status{'p': report.Pass, 'f': report.Fail, 'u': report.Unclear, 's': report.Skip}
	var res Result
	for i, o := range outcomes {
		l := Level{Level: i + 1, Name: fmt.Sprintf("n%d", i+1), Status: names[o]}
		res.Levels = append(res.Levels, l)
		res.Checks = append(res.Checks, report.Check{Level: l.Level, Name: "c", Status: l.Status, Want: "w", Got: "g", Reason: "r"})
	}
	return res
}

func TestVerdict(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		outcomes     string
		require      int
		code, proved int
	}{
		{"ppppppp", 7, report.Done, 7},
		{"pppppss", 0, report.Done, 5},
		{"pppppss", 5, report.Done, 5},
		{"pppppss", 6, report.Inconclusive, 5},
		{"ppfss", 0, report.CheckFailed, 2},
		{"pufss", 0, report.CheckFailed, 1}, // a failure is said before doubt
		{"ppppppu", 0, report.Inconclusive, 6},
		{"ppppppu", 6, report.Inconclusive, 6},
		{"spppppp", 1, report.Inconclusive, 0},
	} {
		res := levels(c.outcomes)
		err := verdict(res, c.require)
		if got := report.ExitCode(err); got != c.code {
			t.Errorf("%s, require %d: code %d (%v), want %d", c.outcomes, c.require, got, err, c.code)
		}
		if got := proved(res.Levels); got != c.proved {
			t.Errorf("%s: proved %d, want %d", c.outcomes, got, c.proved)
		}
	}
	chain := levels("fs").Levels
	chain[1].Reason = blocked(Import, chain[:1])
	if got := blocked(Wiring, chain); got != "level 1 (n1) failed" {
		t.Errorf("level 4 is skipped because %q, want the first cause", got)
	}
	err := verdict(levels("pppppss"), 7)
	if text := err.Error(); !strings.Contains(text, "probe level 6 (n6) was skipped and is required: c") {
		t.Errorf("error %q", text)
	}
}

func TestBlocked(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		outcomes string
		level    int
		want     string
	}{
		{"p", Import, ""},
		{"f", Import, "level 1 (n1) failed"},
		{"ppf", Wiring, ""}, // operators missing, but the import worked
		{"ppf", Kernels, ""},
		{"ppfpp", Numbers, "level 3 (n3) failed"},
		{"pppspp", Numbers, "level 4 (n4) was skipped"},
		{"pppppu", Invariance, "level 6 (n6) is inconclusive"},
	} {
		if got := blocked(c.level, levels(c.outcomes).Levels); got != c.want {
			t.Errorf("%s, level %d: %q, want %q", c.outcomes, c.level, got, c.want)
		}
	}
}

func TestJUnit(t *testing.T) {
	t.Parallel()
	res := levels("pfus")
	res.Target, res.Python = "cpu", "/p"
	res.Levels[0].Elapsed = 1500 * time.Millisecond
	var b bytes.Buffer
	if err := WriteJUnit(&b, res); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Tests    int `xml:"tests,attr"`
		Failures int `xml:"failures,attr"`
		Errors   int `xml:"errors,attr"`
		Skipped  int `xml:"skipped,attr"`
		Suites   []struct {
			Name  string `xml:"name,attr"`
			Time  string `xml:"time,attr"`
			Cases []struct {
				Failure *struct {
					Message string `xml:"message,attr"`
				} `xml:"failure"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	if err := xml.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatalf("%v\n%s", err, b.String())
	}
	if got.Tests != 4 || got.Failures != 1 || got.Errors != 1 || got.Skipped != 1 || len(got.Suites) != 4 {
		t.Errorf("%+v", got)
	}
	if got.Suites[0].Time != "1.500" || got.Suites[1].Cases[0].Failure == nil {
		t.Errorf("%s", b.String())
	}
}

func TestSchedule(t *testing.T) {
	t.Parallel()
	for _, profile := range []string{"quick", "full"} {
		if _, err := LoadSchedule(profile); err != nil {
			t.Error(err)
		}
	}
	for _, c := range []struct{ name, yaml, want string }{
		{"unknown key", "seed: 1\nrow: [1]\n", "f.yaml:2:1"},
		{"no profile", "seed: 1\n", `no profile "quick"`},
		{"no rows", "profiles: {quick: {sweeps: [{name: a}]}}\n", `sweep "a": no rows`},
		{"two of a name", "profiles: {quick: {sweeps: [{name: a, rows: [1]}, {name: a, rows: [2]}]}}\n", "named twice"},
		{"unknown sweep", "profiles: {quick: {sweeps: [{name: a, rows: [1]}], settings: [{isa: best, sweeps: [b]}]}}\n", `no sweep "b"`},
		{"in another profile", "profiles: {quick: {}, full: {settings: [{isa: best, sweeps: [b]}]}}\n", "profile full"},
	} {
		_, err := decodeSchedule("f.yaml", []byte(c.yaml), "quick")
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

// TestScheduleCovers wants the rows of both profiles on both sides of every
// threshold, and a line for every operator of the target.
func TestScheduleCovers(t *testing.T) {
	t.Parallel()
	for _, profile := range []string{"quick", "full"} {
		s, err := LoadSchedule(profile)
		if err != nil {
			t.Fatal(err)
		}
		rows := map[int]bool{}
		for _, sw := range s.Sweeps {
			for _, r := range sw.Rows {
				rows[r] = true
			}
		}
		// The quick list that was derived from known defects is always in.
		for _, r := range []int{1, 2, 17, 33, 64, 129, 255, 257, 300, 1025} {
			if !rows[r] {
				t.Errorf("%s: no batch of %d rows", profile, r)
			}
		}
		if _, uncovered := s.only([]string{"mm", "pack", "linear_packed", "nosuch"}); len(uncovered) != 1 || uncovered[0] != "nosuch" {
			t.Errorf("uncovered %v, want nosuch", uncovered)
		}
	}
}

func TestNumberFault(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		d    deviation
		want string
	}{
		{"right", deviation{Ratio: 1, Elements: 4}, ""},
		{"too far", deviation{Ratio: 1.01, Row: 2, Element: 3, Got: "1", Want: "2", Allowed: "0.1", Elements: 4}, "row 2 element 3 is 1, want 2 within 0.1"},
		{"NaN", deviation{Nonfinite: 2, Got: "nan", Want: "1", Elements: 4}, "2 elements are NaN"},
		{"shape", deviation{Error: "shape [1], want [2]"}, "shape [1], want [2]"},
		{"empty", deviation{}, "empty or all zero"},
		{"zero", deviation{Elements: 4, Zero: true}, "empty or all zero"},
	} {
		if got := numberFault(c.d); !strings.Contains(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// TestRouting wants a failure when the package did not take a call.
func TestRouting(t *testing.T) {
	t.Parallel()
	f := &invarianceFacts{Operators: []caseFacts{{Operator: "mm", Dtype: "float32", Routed: &routedFacts{Function: "mm", Calls: 4, Taken: 3}}}}
	if c := routing(f); c.Status != report.Fail || !strings.Contains(c.Got, "4 calls, 3 taken") {
		t.Errorf("%+v", c)
	}
	f.Operators[0].Routed.Taken = 4
	if c := routing(f); c.Status != report.Pass {
		t.Errorf("%+v", c)
	}
}

func TestLeftOut(t *testing.T) {
	t.Parallel()
	p := &prober{uncovered: []string{"new"}, measured: &measured{Invariance: &invarianceFacts{}}}
	p.target.Operators = []target.Operator{{Name: "new"}}
	checks, err := p.invariance(t.Context())
	if err != nil || checks[0].Status != report.Unclear || !strings.Contains(checks[0].Reason, "no line that calls it") {
		t.Errorf("%+v, %v", checks, err)
	}
}
