package doctor

import (
	"io"

	"github.com/jstemmer/go-junit-report/v2/junit"

	"github.com/invar-ops/invar/internal/report"
)

// WriteJUnit writes one suite a group, one case a finding. A warning is a
// passed case with its text in system-out.
func WriteJUnit(w io.Writer, r Result) error {
	var all junit.Testsuites
	for i, group := range []string{"requirement", "versions", "environment", "container"} {
		suite := junit.Testsuite{ID: i, Name: "invar.doctor." + group}
		suite.AddProperty("target", r.Target)
		suite.AddProperty("root", r.Root)
		for _, f := range r.Findings {
			if f.Group == group {
				suite.AddTestcase(testcase(suite.Name, f))
			}
		}
		all.AddSuite(suite)
	}
	all.Name = "invar doctor " + r.Target
	return all.WriteXML(w)
}

func testcase(suite string, f Finding) junit.Testcase {
	t := junit.Testcase{Name: f.ID + " " + f.Name, Classname: suite}
	text := "want " + f.Want + "\ngot " + f.Got
	if f.Hint != "" {
		text += "\nhint " + f.Hint
	}
	switch f.Status {
	case report.Fail:
		t.Failure = &junit.Result{Message: f.Name + ": " + f.Got, Type: "fail", Data: text}
	case report.Unclear:
		t.Error = &junit.Result{Message: f.Name + ": " + f.Got, Type: "inconclusive", Data: text}
	case Warn:
		t.SystemOut = &junit.Output{Data: text}
	}
	return t
}
