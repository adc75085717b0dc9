package explain

import (
	"regexp"
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
	return strings.TrimSpace(spaces.ReplaceAllString(b.String(), " "))
}

func fillAll(texts []string, values map[string]string) []string {
	var out []string
	for _, t := range texts {
		out = append(out, fill(t, values))
	}
	return out
}
