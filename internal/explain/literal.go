package explain

import (
	"regexp/syntax"
	"slices"
	"strings"
)

// minLiteral is the shortest text that may stand for a pattern in the scan.
// Shorter ones would make nearly every line a candidate.
const minLiteral = 4

// literals returns texts of which every match of the expression holds at least
// one, or nil when no such set exists. Quotes and backslashes never belong to
// them: they differ by locale and by how often a log was escaped.
func literals(expr string) ([]string, error) {
	re, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return nil, err
	}
	set := required(re.Simplify())
	slices.Sort(set)
	return slices.Compact(set), nil
}

// maxSet bounds how many texts may stand for one pattern.
const maxSet = 64

func required(re *syntax.Regexp) []string {
	if set := pieces(exact(re)); set != nil {
		return set
	}
	switch re.Op {
	case syntax.OpCapture, syntax.OpPlus:
		return required(re.Sub[0])
	case syntax.OpRepeat:
		if re.Min > 0 {
			return required(re.Sub[0])
		}
	case syntax.OpConcat:
		return requiredOfConcat(re.Sub)
	case syntax.OpAlternate:
		var all []string
		for _, sub := range re.Sub {
			set := required(sub)
			if set == nil {
				return nil
			}
			all = append(all, set...)
		}
		return all
	}
	return nil
}

// requiredOfConcat joins neighbours whose texts are known into longer ones and
// returns the best set: the one whose shortest text is longest.
func requiredOfConcat(subs []*syntax.Regexp) []string {
	var best []string
	offer := func(set []string) {
		if shortest(set) > shortest(best) {
			best = set
		}
	}
	run := []string{""}
	for _, sub := range subs {
		next := product(run, exact(sub))
		if next != nil {
			run = next
			continue
		}
		offer(pieces(run))
		offer(required(sub))
		if run = exact(sub); run == nil {
			run = []string{""}
		}
	}
	offer(pieces(run))
	return best
}

// exact returns every text that re can match, or nil when they are too many.
func exact(re *syntax.Regexp) []string {
	switch re.Op {
	case syntax.OpEmptyMatch, syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText, syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return []string{""}
	case syntax.OpLiteral:
		if re.Flags&syntax.FoldCase == 0 {
			return []string{string(re.Rune)}
		}
	case syntax.OpCharClass:
		var set []string
		for i := 0; i < len(re.Rune); i += 2 {
			for r := re.Rune[i]; r <= re.Rune[i+1]; r++ {
				if len(set) == 12 {
					return nil
				}
				set = append(set, string(r))
			}
		}
		return set
	case syntax.OpCapture:
		return exact(re.Sub[0])
	case syntax.OpQuest:
		if set := exact(re.Sub[0]); set != nil && len(set) < maxSet {
			return append([]string{""}, set...)
		}
	case syntax.OpConcat:
		set := []string{""}
		for _, sub := range re.Sub {
			if set = product(set, exact(sub)); set == nil {
				return nil
			}
		}
		return set
	case syntax.OpAlternate:
		var all []string
		for _, sub := range re.Sub {
			set := exact(sub)
			if set == nil || len(all)+len(set) > maxSet {
				return nil
			}
			all = append(all, set...)
		}
		return all
	}
	return nil
}

// product returns each of a followed by each of b, or nil when b is nil or the
// result is too large.
func product(a, b []string) []string {
	if b == nil || len(a)*len(b) > maxSet {
		return nil
	}
	var out []string
	for _, x := range a {
		for _, y := range b {
			out = append(out, x+y)
		}
	}
	return out
}

// pieces cuts every text at the characters that may differ and keeps its
// longest piece; nil when one has none.
func pieces(set []string) []string {
	var out []string
	for _, s := range set {
		var best string
		for _, piece := range strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune("'\"`\\‘’“”\n", r) }) {
			if len(piece) > len(best) {
				best = piece
			}
		}
		if best == "" {
			return nil
		}
		out = append(out, best)
	}
	return out
}

func shortest(set []string) int {
	if len(set) == 0 {
		return 0
	}
	n := len(set[0])
	for _, s := range set[1:] {
		n = min(n, len(s))
	}
	return n
}
