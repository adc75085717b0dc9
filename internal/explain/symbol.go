package explain

import (
	"regexp"
	"strings"

	"github.com/ianlancetaylor/demangle"
)

var mangled = regexp.MustCompile(`\b_Z[A-Za-z0-9_$.]{3,}`)

// withSymbol adds the readable form of a mangled C++ name to the line, in
// double brackets, so that rules can tell by it who misses what: a plain
// std::string marks code compiled with the old C++11 ABI.
func withSymbol(text string) string {
	if !strings.Contains(text, "_Z") || !strings.Contains(text, "undefined") {
		return text
	}
	name := mangled.FindString(text)
	if name == "" || len(name) > 2048 {
		return text
	}
	readable, err := demangle.ToString(name, demangle.MaxLength(10))
	if err != nil {
		return text
	}
	return text + " ⟦" + readable + "⟧"
}
