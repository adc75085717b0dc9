package verify

import (
	"fmt"
	"io"
	"strings"

	"github.com/jstemmer/go-junit-report/v2/junit"

	"github.com/invar-ops/invar/internal/verify/judge"
)

// WriteJUnit writes res as JUnit XML: a suite a workload, a test case a run
// against all others, and a suite with the verdict itself. JUnit knows no
// inconclusive outcome; it is an error there, which no CI counts as passed.
func WriteJUnit(w io.Writer, res judge.Result) error {
	all := junit.Testsuites{Name: "invar verify " + res.Server.Model}
	for i, x := range res.Workloads {
		s := junit.Testsuite{ID: i, Name: "invar.verify." + x.Name}
		s.AddProperty("model", res.Server.Model)
		s.AddProperty("version", res.Server.Version)
		for n, r := range x.Runs {
			s.AddTestcase(runCase(s.Name, x, n, r))
		}
		all.AddSuite(s)
	}
	s := junit.Testsuite{ID: len(res.Workloads), Name: "invar.verify.verdict"}
	s.AddTestcase(verdictCase(s.Name, res.Verdict))
	all.AddSuite(s)
	return all.WriteXML(w)
}

func runCase(suite string, w judge.Workload, n int, r judge.Run) junit.Testcase {
	t := junit.Testcase{
		Name: fmt.Sprintf("%s, start %d", r.Label, r.Lifetime), Classname: suite, Time: fmt.Sprintf("%.3f", r.Milliseconds/1000),
	}
	if r.Rank >= 0 {
		t.Name += fmt.Sprintf(", rank %d", r.Rank)
	}
	worst, with := 0, 0
	for m, differ := range w.Heat[n] {
		if differ > worst {
			worst, with = differ, m
		}
	}
	switch {
	case worst > 0:
		t.Failure = &junit.Result{Type: "variant", Message: fmt.Sprintf("%d of %d requests differ from %s", worst, w.Requests, w.Runs[with].Label)}
	case !r.Complete:
		t.Error = &junit.Result{Type: "inconclusive", Message: "the run did not come to its end"}
	}
	return t
}

func verdictCase(suite string, v judge.Verdict) junit.Testcase {
	t := junit.Testcase{Name: "verdict", Classname: suite, Time: "0.000"}
	var text strings.Builder
	for _, r := range v.Reasons {
		fmt.Fprintf(&text, "%s: %s\n", r.ID, r.Text)
	}
	switch v.Word {
	case judge.Variant:
		t.Failure = &junit.Result{Type: string(v.Word), Message: v.Sentence}
	case judge.Inconclusive:
		t.Error = &junit.Result{Type: string(v.Word), Message: v.Sentence, Data: text.String()}
	}
	return t
}
