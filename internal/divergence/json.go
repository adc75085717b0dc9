package divergence

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// tops reads a list of top lists in the shape {"id": [text, logprob]}.
func tops(text []byte) *Report {
	var steps []map[string][]any
	if !bytes.HasPrefix(bytes.TrimSpace(text), []byte("[")) || json.Unmarshal(text, &steps) != nil || len(steps) == 0 {
		return nil
	}
	r := &Report{Word: Tied, Tokens: len(steps)}
	for i, step := range steps {
		if t, ok := tie(i, step); ok {
			r.Ties = append(r.Ties, t)
		}
	}
	if len(r.Ties) == 0 {
		return nil
	}
	t := r.Ties[0]
	r.Sentence = fmt.Sprintf("top-1 tie at step %d: %s have exactly the logprob %v", t.Step, strings.Join(t.Names, " and "), t.Value)
	r.Try = "the token may flip there without any change of a number: compare the logprobs of both runs, and do not blame a kernel for the flip alone"
	return r
}

// tie is the largest candidates of a step, where two or more are equal.
func tie(i int, step map[string][]any) (Tie, bool) {
	type candidate struct {
		name  string
		value float64
	}
	var all []candidate
	for _, v := range step {
		if len(v) != 2 {
			return Tie{}, false
		}
		name, ok1 := v[0].(string)
		value, ok2 := v[1].(float64)
		if !ok1 || !ok2 {
			return Tie{}, false
		}
		all = append(all, candidate{strconv.Quote(name), value})
	}
	slices.SortFunc(all, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.value, a.value), cmp.Compare(a.name, b.name))
	})
	t := Tie{Step: i}
	for _, c := range all {
		if c.value == all[0].value {
			t.Names, t.Value = append(t.Names, c.name), c.value
		}
	}
	return t, len(t.Names) > 1
}

var (
	listOfRE = regexp.MustCompile(`"token_logprobs":\[([^\]]*)(\]?)`)
	topRE    = regexp.MustCompile(`"top_logprobs":\[`)
)

// event reads one streamed answer of the completions API, cut or whole.
func event(text []byte) *Report {
	data, ok := bytes.CutPrefix(bytes.TrimSpace(text), []byte("data: "))
	if !ok {
		return nil
	}
	m := listOfRE.FindSubmatch(data)
	if m == nil || json.Valid(firstLine(data)) {
		return nil // whole: nothing to explain
	}
	r := &Report{Word: Truncated}
	null := false
	for i, f := range strings.Split(string(m[1]), ",") {
		f = strings.TrimSpace(f)
		if f == "" {
			continue
		}
		r.Tokens++
		null = null || i == 0 && f == "null"
	}
	r.Sentence = fmt.Sprintf("an answer of %s, cut before its end", count(r.Tokens, "token"))
	if null {
		r.Sentence += "; the first logprob is null, which is normal with echo"
	}
	if topRE.Match(data) {
		r.Ties = eventTies(string(m[1]), string(data))
	}
	r.Try = "bring the whole line: a cut one cannot be compared"
	return r
}

func firstLine(b []byte) []byte {
	line, _, _ := bytes.Cut(b, []byte("\n"))
	return line
}

// eventTies finds candidates with exactly the logprob of the chosen token, as
// far as the top lists go.
func eventTies(values, data string) []Tie {
	var out []Tie
	for i, f := range strings.Split(values, ",") {
		f = strings.TrimSpace(f)
		v, err := strconv.ParseFloat(f, 64)
		if err != nil {
			continue
		}
		var names []string
		for _, m := range regexp.MustCompile(`"((?:[^"\\]|\\.)*)":`+regexp.QuoteMeta(f)+`[,}\[]`).FindAllStringSubmatch(data, -1) {
			names = append(names, strconv.Quote(m[1]))
		}
		if len(names) > 1 {
			out = append(out, Tie{Step: i, Names: names, Value: v})
		}
	}
	return out
}
