package explain

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/invar-ops/invar/internal/report"
)

// ownResult is the JSON of a command of invar.
type ownResult struct {
	report.Envelope
	lines []string
	bad   []report.Check
}

// parseOwn reads an envelope of invar, or returns nil.
func parseOwn(text []byte) *ownResult {
	var o ownResult
	if json.Unmarshal(text, &o.Envelope) != nil || !strings.HasPrefix(o.Schema, "invar.") {
		return nil
	}
	var tree any
	if json.Unmarshal(text, &tree) != nil {
		return nil
	}
	if e := o.Error; e != nil {
		o.lines = append(o.lines, strings.Split(e.Tail, "\n")...)
		o.lines = append(o.lines, e.Message, e.Got)
	}
	o.walk(tree)
	return &o
}

// walk collects the checks that failed, wherever the result keeps them.
func (o *ownResult) walk(tree any) {
	switch v := tree.(type) {
	case []any:
		for _, e := range v {
			o.walk(e)
		}
	case map[string]any:
		if v["status"] == string(report.Fail) {
			c := report.Check{Name: str(v["name"]), Want: str(v["want"]), Got: str(v["got"]), Hint: str(v["hint"])}
			o.bad = append(o.bad, c)
			o.lines = append(o.lines, c.Got)
		}
		for _, key := range []string{"result", "error", "checks", "levels", "steps", "stages", "probe", "install"} {
			o.walk(v[key])
		}
	}
}

func str(v any) string {
	s, _ := v.(string)
	return s
}

func (o *ownResult) text() io.Reader { return strings.NewReader(strings.Join(o.lines, "\n") + "\n") }

// complete answers from the result itself where no rule knows better: invar
// has already said what it expected, what it found and what to do.
func (o *ownResult) complete(d *Diagnosis) {
	switch {
	case d.Verdict == Found:
		return
	case o.verdict(d):
		return
	case o.OK && o.Error == nil && len(o.bad) == 0:
		*d = Diagnosis{Verdict: Succeeded, Lines: d.Lines, Bytes: d.Bytes}
		return
	}
	own := Diagnosis{Verdict: Found, Family: "invar", Rule: o.Schema, Lines: d.Lines, Bytes: d.Bytes}
	switch {
	case len(o.bad) > 0:
		c := o.bad[0]
		own.Cause = fmt.Sprintf("check %s failed: want %s, got %s", c.Name, c.Want, c.Got)
		own.Fix = &Fix{Do: c.Hint}
		if c.Hint == "" {
			own.Fix.Do = "see the check " + c.Name + " in docs/explain.md, or run invar probe again with --json and bring its output"
		}
	case o.Error != nil && o.Error.Rule != "":
		own.Rule, own.Cause, own.Fix = o.Error.Rule, o.Error.Cause, &Fix{Do: o.Error.Hint}
	case o.Error != nil && o.Error.Hint != "":
		own.Cause, own.Fix = o.Error.Message, &Fix{Do: o.Error.Hint}
	case o.Error != nil && len(o.Error.Requirements) > 0:
		own.Cause = o.Error.Message
		for _, r := range o.Error.Requirements {
			if !r.OK {
				own.Evidence = append(own.Evidence, Evidence{Text: fmt.Sprintf("%s: want %s, got %s", r.Name, r.Want, r.Got)})
				own.Fix = &Fix{Do: r.Hint}
			}
		}
	default:
		own.Verdict, own.Rule = Elsewhere, ""
		own.Bring = []string{"the log file that the error names"}
		if o.Error != nil {
			own.Cause = o.Error.Message
			if o.Error.Log != "" {
				own.Bring[0] += ": " + o.Error.Log
			}
		}
	}
	*d = own
}
