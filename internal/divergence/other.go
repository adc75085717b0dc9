package divergence

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// other reads text diffs, summaries of pytest and lists of token logprobs.
type other struct {
	diffs          int
	minus, plus    int
	failed, passed int
	summary        bool
	lists          []list
}

// A list is the candidates of one run, as people write them down.
type list struct {
	name   string
	tokens []string
	values []float64
}

var (
	diffRE    = regexp.MustCompile(`^Diff in output (\d+):`)
	summaryRE = regexp.MustCompile(`^=+ .*\bin [0-9.]+s`)
	countRE   = regexp.MustCompile(`(\d+) (failed|passed|error)`)
	listRE    = regexp.MustCompile(`^\s*[-*]?\s*([^:|]{1,60}): token \d+ = -?[0-9.]+`)
	pairRE    = regexp.MustCompile(`token (\d+) = (-?[0-9.]+(?:[eE][-+]?\d+)?)`)
)

func (o *other) take(line string) {
	switch {
	case diffRE.MatchString(line):
		o.diffs++
	case o.diffs > 0 && strings.HasPrefix(line, "-"):
		o.minus++
	case o.diffs > 0 && strings.HasPrefix(line, "+"):
		o.plus++
	}
	if summaryRE.MatchString(line) {
		for _, m := range countRE.FindAllStringSubmatch(line, -1) {
			o.summary = true
			if m[2] == "passed" {
				o.passed += number(m[1])
			} else {
				o.failed += number(m[1])
			}
		}
	}
	if m := listRE.FindStringSubmatch(line); m != nil && len(o.lists) < 64 {
		l := list{name: strings.TrimSpace(m[1])}
		for _, p := range pairRE.FindAllStringSubmatch(line, -1) {
			v, err := strconv.ParseFloat(p[2], 64)
			if err == nil {
				l.tokens, l.values = append(l.tokens, p[1]), append(l.values, v)
			}
		}
		o.lists = append(o.lists, l)
	}
}

func (o *other) report() *Report {
	switch {
	case len(o.lists) > 1:
		return compareLists(o.lists)
	case o.diffs > 0 && o.minus+o.plus > 0:
		return &Report{
			Word: Variant, Prompts: o.diffs,
			Sentence: fmt.Sprintf("the text of %s changes with the batch", count(o.diffs, "answer")),
			Try:      "that is expected without batch invariance; vLLM has it from 0.11.1 on: is it switched on",
		}
	case o.summary && o.failed > 0:
		return &Report{
			Word: Failing, Failed: o.failed, Passed: o.passed,
			Sentence: fmt.Sprintf("%s of %d failed; which ones and why is not in this text", count(o.failed, "test"), o.failed+o.passed),
			Try:      "bring the part above the summary: pytest -s prints each divergence",
		}
	}
	return nil
}

// compareLists finds ties inside each list and differences between them.
func compareLists(all []list) *Report {
	r := &Report{Word: Tied, SameIDs: true}
	for i, l := range all {
		if len(l.values) > 1 && l.values[0] == l.values[1] {
			r.Ties = append(r.Ties, Tie{Step: i, Names: slices.Clone(l.tokens[:2]), Value: l.values[0]})
		}
		for j, t := range l.tokens {
			k := slices.Index(all[0].tokens, t)
			if k < 0 {
				r.SameIDs = false
				continue
			}
			if d := abs(l.values[j] - all[0].values[k]); d > r.MaxDelta {
				r.MaxDelta = d
			}
		}
	}
	text := fmt.Sprintf("%s and %s", all[0].name, all[1].name)
	switch {
	case r.MaxDelta > 0:
		r.Word, r.Prompts = Variant, 1
		r.Sentence = fmt.Sprintf("%s: the logprobs of the same tokens differ by up to %.4f, so answers are not invariant", text, r.MaxDelta)
		if len(r.Ties) > 0 {
			r.Sentence += "; where answers part, two tokens have exactly the same logprob"
		}
	case len(r.Ties) > 0:
		r.Sentence = text + ": the same logprobs, with an exact tie: the token may flip though no number moved"
	default:
		return nil
	}
	r.Try = "ask for the same logprobs in all runs, since asking changes how ties are broken; speculative decoding is outside batch invariance"
	return r
}

func abs(v float64) float64 {
	if v < 0 {
		return -v
	}
	return v
}
