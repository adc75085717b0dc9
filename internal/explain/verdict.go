package explain

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/invar-ops/invar/internal/divergence"
)

// A verified is what is read of the result of a verification.
type verified struct {
	Verdict struct {
		Word     string `json:"word"`
		Sentence string `json:"sentence"`
		Reasons  []struct {
			ID, Text, Hint string
		} `json:"reasons"`
	} `json:"verdict"`
	Workloads []struct {
		Name    string `json:"name"`
		Details []struct {
			Request int `json:"request"`
			First   struct {
				Kind     string  `json:"kind"`
				Position int     `json:"position"`
				MaxDelta float64 `json:"max_delta"`
			} `json:"first"`
		} `json:"details"`
	} `json:"workloads"`
	Suspects []struct {
		ID, Text, Try, Reference string
	} `json:"suspects"`
}

// verdict answers from the result of a verification, if o is one.
func (o *ownResult) verdict(d *Diagnosis) bool {
	if !strings.HasPrefix(o.Schema, "invar.verify.") {
		return false
	}
	b, err := json.Marshal(o.Result)
	var v verified
	if err != nil || json.Unmarshal(b, &v) != nil || v.Verdict.Word == "" {
		return false
	}
	out := Diagnosis{Verdict: Found, Family: "invar", Cause: v.Verdict.Sentence, Lines: d.Lines, Bytes: d.Bytes}
	switch v.Verdict.Word {
	case "invariant":
		out = Diagnosis{Verdict: Succeeded, Lines: d.Lines, Bytes: d.Bytes}
	case "variant":
		v.variant(&out, o.Schema)
	default:
		out.Rule, out.Fix = o.Schema, &Fix{Do: "verify again where the reasons do not hold"}
		for i, r := range v.Verdict.Reasons {
			out.Evidence = append(out.Evidence, Evidence{Text: r.ID + ": " + r.Text})
			if i == 0 {
				out.Rule = o.Schema + "." + r.ID
			}
			if r.Hint != "" && (i == 0 || out.Fix.Do == "") {
				out.Fix.Do = r.Hint
			}
		}
	}
	*d = out
	return true
}

// variant names the suspects and where answers first part.
func (v verified) variant(d *Diagnosis, schema string) {
	d.Rule, d.Fix = schema+".variant", &Fix{Do: "narrow it down with one workload at a time: invar verify server --workload NAME"}
	for i, s := range v.Suspects {
		if i == 0 {
			d.Rule, d.Likely, d.Fix.Do = schema+"."+s.ID, true, s.Try
			d.Cause += " Looks like: " + s.Text + "."
		}
		d.See = append(d.See, s.Reference)
		if i > 0 {
			d.Check = append(d.Check, s.Text+": "+s.Try)
		}
	}
	for _, w := range v.Workloads {
		if len(w.Details) > 0 {
			x := w.Details[0]
			d.Evidence = append(d.Evidence, Evidence{Text: fmt.Sprintf("%s: request %d parts at token %d (%s, up to %.3e)", w.Name, x.Request, x.First.Position, x.First.Kind, x.First.MaxDelta)})
		}
	}
}

// diverged answers from what another harness printed of a comparison, if the
// text was one.
func diverged(d *Diagnosis, r *divergence.Report) {
	switch {
	case r == nil:
		return
	case r.Word == divergence.Failing || r.Word == divergence.Truncated:
		*d = Diagnosis{Verdict: Elsewhere, Cause: r.Sentence, Bring: []string{r.Try}, Lines: d.Lines, Bytes: d.Bytes}
		return
	}
	word := strings.NewReplacer(", but ", "-", " ", "-").Replace(string(r.Word))
	*d = Diagnosis{
		Verdict: Found, Family: "invariance", Rule: "answers-" + word, Cause: r.Sentence, Fix: &Fix{Do: r.Try},
		Lines: d.Lines, Bytes: d.Bytes,
	}
}
