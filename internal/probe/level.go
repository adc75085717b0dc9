package probe

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/invar-ops/invar/internal/report"
)

// Levels of a probe, shallow to deep.
const (
	OfImage    = 0 // what an image says of itself; no level of an installation
	Files      = 1 // what lies on disk, without Python
	Import     = 2 // a fresh process imports the package
	Operators  = 3 // every expected operator resolves
	Wiring     = 4 // stage 2 uses the installed stage 1
	Kernels    = 5 // kernels for this SoC are there
	Numbers    = 6 // operators run and are right
	Invariance = 7 // bits do not change with the batch
	Deepest    = Invariance
)

// needs lists, for each level, the levels without which its answer means
// nothing: level 5 reads the manifest and asks the loaded library.
var needs = map[int][]int{
	Import: {Files}, Operators: {Import}, Wiring: {Import}, Kernels: {Import},
	Numbers: {Operators, Wiring, Kernels}, Invariance: {Numbers},
}

// A Level is the outcome of one probe level: the worst of its checks.
type Level struct {
	Level   int           `json:"level"`
	Name    string        `json:"name"`
	Status  report.Status `json:"status"`
	Reason  string        `json:"reason,omitempty"` // why it did not pass, in one line
	Elapsed time.Duration `json:"elapsed_ns,omitempty"`
}

// judge is the outcome of a level with these checks. A level without a check
// proved nothing.
func judge(level int, name string, checks []report.Check, elapsed time.Duration) Level {
	l := Level{Level: level, Name: name, Status: report.Pass, Elapsed: elapsed}
	for _, want := range []report.Status{report.Fail, report.Unclear, report.Skip} {
		var bad []report.Check
		for _, c := range checks {
			if c.Status == want {
				bad = append(bad, c)
			}
		}
		// One skipped check does not spoil what the others proved.
		if len(bad) == 0 || want == report.Skip && len(bad) < len(checks) {
			continue
		}
		l.Status, l.Reason = want, line(bad[0])
		if want == report.Skip {
			l.Reason = bad[0].Reason
		} else if len(bad) > 1 {
			l.Reason += fmt.Sprintf(" (and %d more)", len(bad)-1)
		}
		return l
	}
	if len(checks) == 0 {
		l.Status, l.Reason = report.Unclear, "nothing was checked"
	}
	return l
}

// line is a check that did not pass, for people.
func line(c report.Check) string {
	text := c.Name
	switch {
	case c.Reason != "":
		text += ": " + c.Reason
	case c.Got != "":
		text += ": " + c.Got
	}
	first, _, _ := strings.Cut(text, "\n")
	return first
}

// skipped is the check of a level that was not run.
func skipped(level int, name, reason string) report.Check {
	return report.Check{Level: level, Name: name, Status: report.Skip, Reason: reason}
}

// blocked says which earlier level keeps level from meaning anything.
func blocked(level int, done []Level) string { return blockedBy(needs, level, done) }

func blockedBy(needs map[int][]int, level int, done []Level) string {
	for _, need := range needs[level] {
		i := slices.IndexFunc(done, func(l Level) bool { return l.Level == need })
		if i < 0 || done[i].Status == report.Pass {
			continue
		}
		if done[i].Status == report.Skip {
			// The first cause, not the last link of the chain.
			return firstNonEmpty(done[i].Reason, fmt.Sprintf("level %d (%s) was skipped", need, done[i].Name))
		}
		word := map[report.Status]string{report.Fail: "failed", report.Unclear: "is inconclusive"}[done[i].Status]
		return fmt.Sprintf("level %d (%s) %s", need, done[i].Name, word)
	}
	return ""
}

// proved is the deepest level N with levels 1 to N all passed.
func proved(done []Level) int {
	n := 0
	for _, l := range done {
		if l.Level == OfImage {
			continue
		}
		if l.Level != n+1 || l.Status != report.Pass {
			break
		}
		n = l.Level
	}
	return n
}

func check(level int, name string, ok bool, want, got string) report.Check {
	c := report.Check{Level: level, Name: name, Status: report.Pass, Want: want, Got: got}
	if !ok {
		c.Status = report.Fail
	}
	return c
}
