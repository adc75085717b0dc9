package explain

import (
	"cmp"
	"maps"
	"slices"
)

// near enough, in lines, for two rules to speak of the same error: the more
// specific one wins, not the earlier one.
const sameError = 3

// A finding is a rule whose every condition holds.
type finding struct {
	rule *compiled
	at   sighting // the first hard one, or the first
	soft bool     // only in lines that their writer calls warnings
	last int      // line of the last sighting
}

// findings collects the rules that hold for the whole log.
func (s *scanner) findings() []finding {
	var out []finding
	byRule := map[int]*finding{}
	for id, p := range s.set.patterns {
		t := &s.tracks[id]
		if p.log || len(t.first) == 0 {
			continue
		}
		f := byRule[p.rule]
		if f == nil {
			f = &finding{rule: &s.set.rules[p.rule], soft: true, at: t.first[0]}
			byRule[p.rule] = f
		}
		for _, sg := range t.first {
			if f.soft && !sg.soft || f.soft == sg.soft && sg.line < f.at.line {
				f.at, f.soft = sg, sg.soft
			}
		}
		f.last = max(f.last, t.last)
	}
	for id, p := range s.set.patterns {
		if f := byRule[p.rule]; f != nil && !p.log {
			f.join(s.tracks[id].first)
		}
	}
	for i := range s.set.rules {
		if f := byRule[i]; f != nil && s.logHolds(f) {
			out = append(out, *f)
		}
	}
	return out
}

// join takes values and evidence from other sightings of the same error.
func (f *finding) join(others []sighting) {
	for _, sg := range others {
		if sg.line < f.at.line || sg.line-f.at.line > sameError || sg.soft != f.at.soft {
			continue
		}
		f.at.values = merge(f.at.values, sg.values)
		for _, e := range sg.evidence {
			f.at.add(e)
		}
	}
}

// logHolds asks the conditions on the whole log and takes over their values
// and evidence.
func (s *scanner) logHolds(f *finding) bool {
	seen := func(id int) bool { return len(s.tracks[id].first) > 0 }
	take := func(ids []int) {
		for _, id := range ids {
			if !seen(id) {
				continue
			}
			sg := s.tracks[id].first[0]
			f.at.values = merge(f.at.values, sg.values)
			f.at.add(sg.evidence[0])
		}
	}
	r := f.rule
	for _, id := range r.logAll {
		if !seen(id) {
			return false
		}
	}
	if len(r.logAny) > 0 && !slices.ContainsFunc(r.logAny, seen) {
		return false
	}
	if slices.ContainsFunc(r.logNone, seen) {
		return false
	}
	take(r.logAll)
	take(r.logAny)
	take(r.logMay)
	return true
}

// merge returns values with those of more that it does not have.
func merge(values, more map[string]string) map[string]string {
	out := maps.Clone(more)
	if out == nil {
		out = map[string]string{}
	}
	for k, v := range values {
		if v != "" {
			out[k] = v
		}
	}
	return out
}

// judge picks the first real cause among the findings.
func (s *scanner) judge(known map[string]string) Diagnosis {
	d := Diagnosis{Bytes: s.size, Lines: s.line}
	if len(s.buf) == 0 || s.buf[len(s.buf)-1] == '\n' {
		d.Lines--
	}
	all := s.findings()
	if s.succeeded(all) {
		d.Verdict = Succeeded
		return d
	}
	best := pick(all)
	switch {
	case best == nil && slices.ContainsFunc(all, func(f finding) bool { return f.rule.Level == Progress || f.rule.Level == Success }):
		d.Verdict = Succeeded
		return d
	case best == nil:
		d.Verdict = Nothing
		d.Bring = []string{"the first line that says error, FAILED, fatal or Traceback, with 30 lines before and after it", "the command that was run and its exit status"}
		return d
	case best.rule.Level == Wrapper:
		d.Verdict = Elsewhere
	default:
		d.Verdict = Found
	}
	s.set.finish(&d, best, known)
	for _, f := range all {
		if f.rule != best.rule && f.tells(best) {
			d.Also = append(d.Also, Other{f.rule.ID, f.at.line, fill(f.rule.Why, f.at.values)})
		}
	}
	slices.SortStableFunc(d.Also, func(a, b Other) int { return cmp.Compare(a.Line, b.Line) })
	return d
}

// tells is whether a finding adds something to the one that was picked.
func (f *finding) tells(best *finding) bool {
	switch f.rule.Level {
	case Cause, Silent:
		return f.at.line != best.at.line
	case Weak:
		return f.at.line > best.at.line+sameError || f.at.line < best.at.line-sameError
	}
	return false
}

// succeeded tells whether the log ends well in spite of what else it says. A
// sign of success after the last trouble clears it when that trouble was a
// warning, or an error from which a retry recovers, or one that no wrapper
// took for a failure (a configure test that failed to compile).
func (s *scanner) succeeded(all []finding) bool {
	var success, progress, trouble, warning int
	wrapped, lasting := false, false
	for _, f := range all {
		switch f.rule.Level {
		case Silent:
			return false
		case Success:
			success = max(success, f.last)
		case Progress:
			progress = max(progress, f.last)
		case Wrapper:
			wrapped = wrapped || !f.rule.Transient
			trouble = max(trouble, f.last)
		default:
			if f.soft {
				warning = max(warning, f.last)
				continue
			}
			lasting = lasting || !f.rule.Transient
			trouble = max(trouble, f.last)
		}
	}
	if trouble == 0 {
		return warning > 0 && max(success, progress) > warning || warning == 0 && success > 0
	}
	return success > trouble && success > warning && !(wrapped && lasting)
}

// pick returns the finding that explains the others, or nil.
func pick(all []finding) *finding {
	held := map[string]bool{}
	for _, f := range all {
		held[f.rule.ID] = true
	}
	free := func(f finding) bool {
		return !slices.ContainsFunc(f.rule.ConsequenceOf, func(id string) bool { return held[id] })
	}
	classes := []func(finding) bool{
		func(f finding) bool { return f.rule.Level == Cause && !f.soft && free(f) },
		func(f finding) bool { return f.rule.Level == Cause && free(f) },
		func(f finding) bool { return f.rule.Level == Cause },
		func(f finding) bool { return f.rule.Level == Weak && free(f) },
		func(f finding) bool { return f.rule.Level == Weak },
		func(f finding) bool { return f.rule.Level == Silent && free(f) },
		func(f finding) bool { return f.rule.Level == Silent },
		func(f finding) bool { return f.rule.Level == Wrapper },
	}
	for _, in := range classes {
		if best := first(all, in); best != nil {
			return best
		}
	}
	return nil
}

// first returns the most specific finding of the earliest error in a class.
func first(all []finding, in func(finding) bool) *finding {
	var best *finding
	for i := range all {
		f := &all[i]
		if !in(*f) {
			continue
		}
		if best == nil {
			best = f
			continue
		}
		close := f.at.line-best.at.line <= sameError && best.at.line-f.at.line <= sameError
		if close && f.rule.Order != best.rule.Order {
			if f.rule.Order < best.rule.Order {
				best = f
			}
		} else if f.at.line < best.at.line {
			best = f
		}
	}
	return best
}
