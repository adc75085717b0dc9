package explain

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxValue    = 240 // bytes of a captured value in a text
	maxEvidence = 600 // bytes of a line that is shown
)

// harmless values may stand in a command that a person pastes into a shell.
var harmless = regexp.MustCompile(`^[\w./@%+:=,~^][\w./@%+:=,~^-]*$`)

// version is a version specifier; rules set the value spec in double quotes.
var version = regexp.MustCompile(`^[<>=!~]=?[\w.+*,<>=~]*$`)

// forShell returns values for commands. A log is written by others: a value
// with anything that a shell takes apart becomes a word in capitals, which the
// reader has to replace with what the cause says.
func forShell(values map[string]string) map[string]string {
	out := map[string]string{}
	for k, v := range values {
		if v != "" && !harmless.MatchString(v) && (k != "spec" || !version.MatchString(v)) {
			v = strings.ToUpper(k)
		}
		out[k] = v
	}
	return out
}

// clip cuts s at max bytes, at the border of a character.
func clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most] + "…"
}

// printable takes out what would steer a terminal: control characters that
// belong to no sequence that the cleaner knows, and changes of text direction.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t':
			return r
		case unicode.IsControl(r), r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069:
			return -1
		}
		return r
	}, s)
}
