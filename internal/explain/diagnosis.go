package explain

import (
	"maps"

	"github.com/invar-ops/invar/internal/report"
)

// Verdict is what a log turned out to be.
type Verdict string

const (
	// Found: the log holds the first real cause.
	Found Verdict = "cause"
	// Succeeded: the log shows success; there is nothing to explain.
	Succeeded Verdict = "success"
	// Elsewhere: the log shows a failure, but its cause is not in this excerpt.
	Elsewhere Verdict = "not-in-excerpt"
	// Nothing: the log shows neither a failure that a rule knows nor success.
	Nothing Verdict = "nothing"
)

// A Diagnosis is the answer to a log.
type Diagnosis struct {
	Verdict  Verdict    `json:"verdict"`
	Rule     string     `json:"rule,omitempty"`
	Family   string     `json:"family,omitempty"`
	Cause    string     `json:"cause,omitempty"`
	Likely   bool       `json:"likely,omitempty"` // the text suggests the cause but does not prove it
	Evidence []Evidence `json:"evidence,omitempty"`
	Check    []string   `json:"check,omitempty"`
	Fix      *Fix       `json:"fix,omitempty"`
	Bring    []string   `json:"bring,omitempty"` // lines to bring when the cause is elsewhere
	See      []string   `json:"see,omitempty"`
	Also     []Other    `json:"also,omitempty"` // other rules that matched, by line
	Lines    int        `json:"lines"`
	Bytes    int64      `json:"bytes"`
}

// Other is a rule that matched too: a consequence, or a second problem.
type Other struct {
	Rule  string `json:"rule"`
	Line  int    `json:"line"`
	Cause string `json:"cause"`
}

// Code is the exit code that belongs to the verdict: done when a cause was
// found or the log shows success, inconclusive otherwise.
func (d Diagnosis) Code() int {
	if d.Verdict == Found || d.Verdict == Succeeded {
		return report.Done
	}
	return report.Inconclusive
}

// Hint is the fix in one line, for the end of an error.
func (d Diagnosis) Hint() string {
	if d.Fix == nil {
		return ""
	}
	for _, list := range [][]string{d.Fix.Run, d.Fix.Apt, d.Fix.Pip} {
		if len(list) > 0 {
			return d.Fix.Do + ": " + list[0]
		}
	}
	return d.Fix.Do
}

// finish turns a finding into the answer: values of the log first, then those
// that the caller knows, such as jobs and memory.
func (s *set) finish(d *Diagnosis, f *finding, known map[string]string) {
	values := maps.Clone(known)
	if values == nil {
		values = map[string]string{}
	}
	for k, v := range f.at.values {
		values[k] = clip(v, maxValue)
	}
	safe := forShell(values)
	r := f.rule
	d.Rule, d.Family, d.Likely = r.ID, r.Family, r.Likely
	d.Cause = fill(r.Why, values)
	for _, e := range f.at.evidence {
		d.Evidence = append(d.Evidence, Evidence{e.Line, clip(e.Text, maxEvidence)})
	}
	d.Check, d.See, d.Bring = fillAll(r.Check, safe), r.See, fillAll(r.Bring, values)
	if r.Fix.Do == "" {
		return
	}
	fix := r.Fix
	fix.Do = fill(fix.Do, values)
	fix.Run, fix.Apt, fix.Dnf, fix.Pip = fillAll(fix.Run, safe), fillAll(fix.Apt, safe), fillAll(fix.Dnf, safe), fillAll(fix.Pip, safe)
	fix = s.packages.complete(fix, safe)
	fix.Provides = ""
	d.Fix = &fix
}
