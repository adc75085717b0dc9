package probe

import (
	"io"
	"strconv"
	"time"

	"github.com/jstemmer/go-junit-report/v2/junit"

	"github.com/invar-ops/invar/internal/report"
)

// WriteJUnit writes res as JUnit XML: a suite a level, a test case a check.
// JUnit knows no inconclusive outcome; it is an error there, which no CI counts
// as passed.
func WriteJUnit(w io.Writer, res Result) error {
	var all junit.Testsuites
	for i, l := range res.Levels {
		suite := junit.Testsuite{ID: i, Name: "invar.probe." + l.Name, Time: seconds(l.Elapsed)}
		suite.AddProperty("target", res.Target)
		suite.AddProperty("python", res.Python)
		for _, c := range res.Checks {
			if c.Level == l.Level {
				suite.AddTestcase(testcase(suite.Name, c))
			}
		}
		all.AddSuite(suite)
	}
	all.Name = "invar probe " + res.Target
	return all.WriteXML(w)
}

func testcase(suite string, c report.Check) junit.Testcase {
	t := junit.Testcase{Name: c.Name, Classname: suite, Time: seconds(c.Elapsed)}
	text := "want " + c.Want + "\ngot " + c.Got
	if c.Hint != "" {
		text += "\nhint " + c.Hint
	}
	switch c.Status {
	case report.Fail:
		t.Failure = &junit.Result{Message: line(c), Type: "fail", Data: text}
	case report.Unclear:
		t.Error = &junit.Result{Message: line(c), Type: "inconclusive", Data: c.Reason}
	case report.Skip:
		t.Skipped = &junit.Result{Message: c.Reason}
	}
	return t
}

// seconds is d as JUnit wants it.
func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', 3, 64) }
