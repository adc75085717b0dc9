package probe

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/target"
)

// takes checks an operator whose schema is the vendor's affair by the way in
// which it is called: the arguments that vllm-ascend passes by position have
// types that fit, none besides is required, and the overloads that it names are
// there. ok is true where nothing is wrong, or nothing known.
func (p *prober) takes(o operatorFacts) (report.Check, bool) {
	name := "operator " + o.Name
	i := slices.IndexFunc(p.target.Operators, func(t target.Operator) bool { return t.Name == o.Name })
	if i < 0 {
		return report.Check{}, true
	}
	want := p.target.Operators[i]
	if len(want.Takes) > 0 && !slices.ContainsFunc(o.Schemas, func(s string) bool { return fits(s, want.Takes) }) {
		c := check(Operators, name, false, "a schema that takes ("+strings.Join(want.Takes, ", ")+") by position", strings.Join(o.Schemas, "; "))
		c.Hint = "vllm-ascend would call it in vain: the wheel is of another version"
		return c, false
	}
	for _, overload := range want.Overloads {
		if !slices.ContainsFunc(o.Schemas, func(s string) bool { return overloadOf(s) == overload }) {
			c := check(Operators, name, false, fmt.Sprintf("an overload %q", overload), strings.Join(o.Schemas, "; "))
			c.Hint = "vllm-ascend calls it by that name: the wheel is of another version"
			return c, false
		}
	}
	return report.Check{}, true
}

// overloadOf is the overload of a schema, "default" for the one without a name.
func overloadOf(schema string) string {
	name, _, _ := strings.Cut(schema, "(")
	if at := strings.LastIndex(name, "."); at >= 0 {
		return name[at+1:]
	}
	return "default"
}

// fits reports whether a call with arguments of these types by position
// matches the schema, as torch writes it: "ns::name.out(Tensor a, *, int b=0) -> Tensor".
func fits(schema string, types []string) bool {
	_, rest, ok := strings.Cut(schema, "(")
	end := closing(rest)
	if !ok || end < 0 {
		return false
	}
	byPosition := true
	n := 0
	for _, arg := range split(rest[:end]) {
		if arg == "*" {
			byPosition = false
			continue
		}
		typ, named, _ := strings.Cut(arg, " ")
		optional := strings.Contains(named, "=")
		switch {
		case byPosition && n < len(types):
			if !regexp.MustCompile(`^(?:` + types[n] + `)$`).MatchString(typ) {
				return false
			}
			n++
		case !optional:
			return false
		}
	}
	return n == len(types)
}

// closing is where the parenthesis ends that was open before text.
func closing(text string) int {
	depth := 1
	for i, c := range text {
		switch c {
		case '(', '[':
			depth++
		case ')', ']':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

// split cuts arguments at the commas that are in no bracket.
func split(text string) []string {
	var out []string
	depth, from := 0, 0
	for i, c := range text {
		switch c {
		case '(', '[':
			depth++
		case ')', ']':
			depth--
		case ',':
			if depth == 0 {
				out = append(out, strings.TrimSpace(text[from:i]))
				from = i + 1
			}
		}
	}
	if last := strings.TrimSpace(text[from:]); last != "" {
		out = append(out, last)
	}
	return out
}
