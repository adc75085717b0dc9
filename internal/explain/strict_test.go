package explain

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/invar-ops/invar/internal/report"
)

const goodRule = `family: x
about: a test
rules:
  - id: a
    any: ['some text that (?P<what>fails)']
    cause: 'it {what}'
    fix: {do: 'repair it'}
    see: ['docs/explain.md']
    example: some text that fails
`

// TestStrictRules: a rule file with a slip is refused, and the error says where.
func TestStrictRules(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, from, to, want string }{
		{"good", "", "", ""},
		{"unknown key", "cause:", "cuase:", `unknown field "cuase"`},
		{"repeated key", "about: a test", "about: a test\nabout: b", "already defined"},
		{"repeated id", "    example: some text that fails\n", "    example: some text that fails\n  - {id: a, any: [some text], cause: x, fix: {do: y}, see: [z], example: some text}\n", "rule a is also in"},
		{"wrong family", "family: x", "family: y", "want family x"},
		{"no example", "    example: some text that fails\n", "", "no example"},
		{"no reference", "    see: ['docs/explain.md']\n", "", "no reference"},
		{"unknown level", "    cause:", "    level: maybe\n    cause:", `unknown level "maybe"`},
		{"unknown consequence", "    cause:", "    consequence_of: [b]\n    cause:", "unknown rule b"},
		{"broken expression", "(?P<what>fails)", "(?P<what>fails", "missing closing )"},
		{"no literal", "some text that (?P<what>fails)", ".*(?P<what>.)", "no literal"},
		{"unknown placeholder", "it {what}", "it {where}", "{where}"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			text := strings.Replace(goodRule, c.from, c.to, 1)
			rules, err := readRules(fstest.MapFS{"rules/x.yaml": {Data: []byte(text)}})
			if err == nil {
				_, err = newSet(rules)
			}
			switch {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
}

// TestLookup: every rule is found by its id, and families are the file names.
func TestLookup(t *testing.T) {
	t.Parallel()
	rules, err := Rules()
	if err != nil || len(rules) < 150 {
		t.Fatalf("%d rules, %v", len(rules), err)
	}
	for _, want := range rules {
		if got, ok := Lookup(want.ID); !ok || got.Family != want.Family || got.Why != want.Why {
			t.Errorf("Lookup(%s) = %v, %v", want.ID, got.ID, ok)
		}
	}
	if _, ok := Lookup("no-such-rule"); ok {
		t.Error("a rule that does not exist was found")
	}
	text, err := json.Marshal(rules[0])
	if err != nil || !strings.Contains(string(text), `"id":`) {
		t.Errorf("as JSON: %s, %v", text, err)
	}
}

// TestOwnJSON: the JSON of invar's own failures is understood.
func TestOwnJSON(t *testing.T) {
	t.Parallel()
	envelope := func(command string, result any, err error) string {
		var b strings.Builder
		if err := report.WriteJSON(&b, command, result, err); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	problem := report.Problemf(report.BuildFailed, "stage 2 failed")
	problem.Tail = "[1/2] c++ a.cpp\nFAILED: a.o\na.cpp:1:10: fatal error: numa.h: No such file or directory\nninja: build stopped: subcommand failed."
	hinted := report.Problemf(report.Failed, "the lock is held").WithHint("wait for process 12")
	checks := map[string]any{"checks": []report.Check{
		{Level: 1, Name: "files", Status: report.Pass},
		{Level: 2, Name: "import", Status: report.Fail, Want: "import", Got: "ImportError: libhccl.so: cannot open shared object file: No such file or directory"},
	}}
	other := map[string]any{"checks": []report.Check{{Level: 7, Name: "batch invariance", Status: report.Fail, Want: "0 bits differ", Got: "12 rows differ at m = 3", Hint: "bring the report"}}}
	unmet := &report.UnmetError{Target: "cuda", All: []report.Requirement{{Name: "nvcc", Want: ">= 12.8", Got: "none", Hint: "install it"}}}
	for _, c := range []struct{ name, text, rule, verdict, says string }{
		{"tail of a build", envelope("build", nil, problem), "header-missing", "cause", "numa.h"},
		{"check that a rule knows", envelope("probe", checks, report.Problemf(report.CheckFailed, "probe failed")), "cann-library-missing", "cause", "libhccl"},
		{"check that no rule knows", envelope("probe", other, report.Problemf(report.CheckFailed, "probe failed")), "invar.probe", "cause", "12 rows differ"},
		{"hint", envelope("install", nil, hinted), "invar.install", "cause", "wait for process 12"},
		{"unmet", envelope("build", nil, unmet), "invar.build", "cause", "install it"},
		{"success", envelope("build", map[string]any{"generation": 1}, nil), "", "success", ""},
		{"no reason", envelope("build", nil, report.Problemf(report.Failed, "went wrong")), "", "not-in-excerpt", "went wrong"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := diagnose(t, c.text)
			if string(d.Verdict) != c.verdict || d.Rule != c.rule {
				t.Errorf("%s, rule %q, want %s, %q", d.Verdict, d.Rule, c.verdict, c.rule)
			}
			if !strings.Contains(all(d), c.says) {
				t.Errorf("the answer does not say %q:\n%s", c.says, all(d))
			}
		})
	}
}
