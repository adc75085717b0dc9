package explain

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// placeholder is {name}, {name|text for when the log does not have it},
// {name|} for an aside that may be missing, or {name~} for the bare value or
// nothing.
var placeholder = regexp.MustCompile(`\{([a-z_0-9]+)(~|\|[^{}]*)?\}`)

var spaces = regexp.MustCompile(`  +`)

// fill puts captured values into a text of a rule. An aside right after a word
// is set in brackets: "the compiler{lang|}" becomes "the compiler (CXX)".
func fill(text string, values map[string]string) string {
	if !strings.Contains(text, "{") {
		return text
	}
	var b strings.Builder
	last := 0
	for _, m := range placeholder.FindAllStringSubmatchIndex(text, -1) {
		b.WriteString(text[last:m[0]])
		last = m[1]
		value := values[text[m[2]:m[3]]]
		tail := ""
		if m[4] >= 0 {
			tail = text[m[4]:m[5]]
		}
		switch {
		case value == "" && tail != "~":
			b.WriteString(strings.TrimPrefix(tail, "|"))
		case value != "" && tail == "|" && m[0] > 0 && !strings.ContainsRune(" (", rune(text[m[0]-1])):
			b.WriteString(" (" + value + ")")
		default:
			b.WriteString(value)
		}
	}
	b.WriteString(text[last:])
	// What the log does not have leaves a gap, before a comma too.
	return strings.TrimSpace(strings.ReplaceAll(spaces.ReplaceAllString(b.String(), " "), " ,", ","))
}

func fillAll(texts []string, values map[string]string) []string {
	var out []string
	for _, t := range texts {
		out = append(out, fill(t, values))
	}
	return out
}

// Summary is the cause of a rule in one line, with names in place of values.
func (r Rule) Summary() string {
	text := placeholder.ReplaceAllStringFunc(r.Why, func(s string) string {
		m := placeholder.FindStringSubmatch(s)
		if m[2] == "" {
			return "<" + m[1] + ">"
		}
		return strings.Trim(m[2], "|~")
	})
	return strings.NewReplacer(" )", ")", "(; ", "(", "( ", "(").Replace(spaces.ReplaceAllString(text, " "))
}

// placeholders refuses a rule whose texts ask for a value that none of its
// patterns can capture.
func (r *Rule) placeholders() error {
	named := map[string]bool{}
	exprs := [][]string{r.Any}
	if r.Near != nil {
		exprs = append(exprs, r.Near.All, r.Near.Any, r.Near.May)
	}
	if r.Log != nil {
		exprs = append(exprs, r.Log.All, r.Log.Any, r.Log.May)
	}
	for _, list := range exprs {
		for _, e := range list {
			for _, m := range groupName.FindAllStringSubmatch(e, -1) {
				named[m[1]] = true
			}
		}
	}
	texts := slices.Concat([]string{r.Why, r.Fix.Do}, r.Check, r.Fix.Run, r.Fix.Apt, r.Fix.Dnf, r.Fix.Pip, r.Bring)
	for _, t := range texts {
		for _, m := range placeholder.FindAllStringSubmatch(t, -1) {
			if !named[m[1]] {
				return fmt.Errorf("no pattern captures {%s}", m[1])
			}
		}
	}
	if p := r.Fix.Provides; p != "" && !named[p] {
		return fmt.Errorf("no pattern captures %s, which provides looks up", p)
	}
	return nil
}

var groupName = regexp.MustCompile(`\(\?P<(\w+)>`)
