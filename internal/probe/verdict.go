package probe

import (
	"fmt"

	"github.com/invar-ops/invar/internal/report"
)

// verdict turns the levels into the error of the probe.
func verdict(res Result, require int) error {
	if res.Simulated != "" && require > Kernels && len(res.Levels) >= require {
		return onSimulated(res, require)
	}
	for _, bad := range []report.Status{report.Fail, report.Unclear, report.Skip} {
		for _, l := range res.Levels {
			if l.Status != bad || bad == report.Skip && l.Level > require {
				continue
			}
			return problem(res, l)
		}
	}
	return nil
}

func problem(res Result, l Level) error {
	words := map[report.Status]string{report.Fail: "failed", report.Unclear: "is inconclusive", report.Skip: "was skipped and is required"}
	code := report.Inconclusive
	if l.Status == report.Fail {
		code = report.CheckFailed
	}
	p := report.Problemf(code, "probe level %d (%s) %s", l.Level, l.Name, words[l.Status])
	for _, c := range res.Checks {
		if c.Level == l.Level && c.Status == l.Status {
			p.Want, p.Got, p.Hint = c.Want, c.Got, c.Hint
			if c.Reason != "" {
				p.Got = c.Reason
			}
			p.Err = fmt.Errorf("%w: %s", p.Err, c.Name)
			break
		}
	}
	return p
}
