package lint

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/invar-ops/invar/internal/deployment"
)

// A Finding is one rule that holds, or may hold.
type Finding struct {
	Rule
	Where    string   `json:"where"`
	Line     int      `json:"line,omitempty"`
	Sure     bool     `json:"sure"`              // every fact of the rule is known
	Unknown  []string `json:"unknown,omitempty"` // facts that would settle it
	Assumed  []string `json:"assumed,omitempty"` // facts that are the engine's defaults
	Observed string   `json:"observed"`          // "tp 4, version 0.26.0"
}

// A Start is one server of the text and what was found about it.
type Start struct {
	Where    string    `json:"where"`
	Line     int       `json:"line,omitempty"`
	Facts    Facts     `json:"facts"`
	Problems []string  `json:"problems,omitempty"` // of reading
	Findings []Finding `json:"findings"`
	Open     int       `json:"open"` // rules that could not be decided and are not shown
}

// Check judges every server that the deployments start. With all, rules that
// unknown facts leave open are findings, too.
func Check(ds []deployment.Deployment, g Given, all bool) ([]Start, error) {
	k, err := load()
	if err != nil {
		return nil, err
	}
	var out []Start
	for _, d := range deployment.Servers(ds) {
		f, problems := k.factsOf(d, g)
		s := Start{Where: d.Where, Line: d.Line, Facts: f, Problems: append(slices.Clone(d.Problems), problems...)}
		for _, r := range k.rules {
			t, finding := r.apply(f)
			finding.Where, finding.Line = d.Where, d.Line
			switch {
			case t == yes, t == unknown && (all || nearly(finding)):
				s.Findings = append(s.Findings, finding)
			case t == unknown:
				s.Open++
			}
		}
		if v := unvalidated(f, d); v != nil {
			s.Findings = append(s.Findings, *v)
		}
		s.rank()
		out = append(out, s)
	}
	return out, nil
}

// nearly reports whether a rule lacks one fact only and others speak for it:
// such a rule is worth a question to the user.
func nearly(f Finding) bool {
	return len(f.Unknown) == 1 && len(f.When) >= 3 && f.Confidence != "low"
}

// apply evaluates the conjunction: one "no" decides, else one "unknown" leaves it open.
func (r Rule) apply(f Facts) (truth, Finding) {
	out := Finding{Rule: r}
	result := yes
	var seen []string
	for fact, want := range r.When {
		t, err := condition(fact, want, f)
		if err != nil || t == no { // load has checked every condition
			return no, out
		}
		if t == unknown {
			result = unknown
			out.Unknown = append(out.Unknown, fact)
			continue
		}
		if slices.Contains(f.Assumed, fact) {
			out.Assumed = append(out.Assumed, fact)
		}
		if fact != "engine" {
			seen = append(seen, fact+" "+f.value(fact))
		}
	}
	sort.Strings(out.Unknown)
	sort.Strings(out.Assumed)
	sort.Strings(seen)
	out.Sure, out.Observed = result == yes, strings.Join(seen, ", ")
	return result, out
}

func (f Facts) value(fact string) string {
	switch fact {
	case "version":
		return f.Version
	case "family":
		return strings.Join(f.Families, "+")
	}
	return f.Values[fact]
}

// unvalidated is the finding that upstream does not name the model as tested.
func unvalidated(f Facts, d deployment.Deployment) *Finding {
	device := f.Values["device"]
	if f.Model == "" || device != "cuda" && device != "ascend" || slices.Contains(f.validated, device) {
		return nil
	}
	why := "its name is not among the models that upstream's docs name as tested on " + device
	if strings.HasPrefix(f.Model, "/") && !f.known {
		why = "its name says nothing about the model; " + why
	}
	return &Finding{
		Rule: Rule{
			ID: "model-not-validated", Title: "not validated upstream: " + f.Model, Kind: "setting", Why: why,
			Fix: "verify it on your server: invar verify server", Reference: "docs of vLLM and vllm-ascend on batch invariance", Confidence: "medium",
		},
		Where: d.Where, Line: d.Line, Sure: true, Observed: "device " + device,
	}
}

// rank puts what is sure, then what weighs most, first.
func (s *Start) rank() {
	kinds := []string{"start", "setting", "numerics", "performance", "visibility"}
	confidence := []string{"high", "medium", "low"}
	sort.SliceStable(s.Findings, func(i, j int) bool {
		a, b := s.Findings[i], s.Findings[j]
		if a.Sure != b.Sure {
			return a.Sure
		}
		if x, y := slices.Index(kinds, a.Kind), slices.Index(kinds, b.Kind); x != y {
			return x < y
		}
		return slices.Index(confidence, a.Confidence) < slices.Index(confidence, b.Confidence)
	})
}

// Against counts the findings that are sure and break the guarantee or the start.
func Against(starts []Start) int {
	n := 0
	for _, s := range starts {
		for _, f := range s.Findings {
			if f.Sure && f.Kind != "performance" && f.Kind != "visibility" && f.Confidence != "low" && f.ID != "model-not-validated" {
				n++
			}
		}
	}
	return n
}

// Title is a start in one line, for people.
func (s Start) Title() string {
	version := s.Facts.Version
	if version == "" {
		version = "of unknown version"
	}
	return fmt.Sprintf("%s: %s %s, model %s", s.Where, s.Facts.Engine, version, or(s.Facts.Model, "unknown"))
}

func or(s, instead string) string {
	if s == "" {
		return instead
	}
	return s
}

// FactsOf is what a start says, without a judgement.
func FactsOf(d deployment.Deployment, g Given) (Facts, []string, error) {
	k, err := load()
	if err != nil {
		return Facts{}, nil, err
	}
	f, problems := k.factsOf(d, g)
	return f, append(slices.Clone(d.Problems), problems...), nil
}
