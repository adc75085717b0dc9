package runpkg

import (
	"regexp"
	"strings"
)

// A shellVar is one assignment in a header, read as text.
type shellVar struct {
	value string
	// dynamic: the value holds an expansion that only a shell could do.
	dynamic bool
	// conflict: another line gives the same variable another value.
	conflict bool
}

var assignment = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*=`)

// shellVars reads the assignments that begin a line, with the quoting of the
// shell: licence texts run over many lines and may hold anything, lines that
// look like assignments included. It stops behind the variable stop, if any.
func shellVars(text, stop string) map[string]shellVar {
	vars := map[string]shellVar{}
	for len(text) > 0 {
		name := assignment.FindString(text)
		if name != "" {
			v, rest := shellWord(text[len(name):])
			name = name[:len(name)-1]
			if old, ok := vars[name]; ok && old.value != v.value {
				v.conflict = true
			}
			vars[name] = v
			text = rest
			if name == stop {
				break
			}
		}
		_, text, _ = strings.Cut(text, "\n")
	}
	return vars
}

// shellWord reads one word: quoted and unquoted parts without a blank between.
func shellWord(s string) (v shellVar, rest string) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '\'':
			end := strings.IndexByte(s[i+1:], '\'')
			if end < 0 {
				return shellVar{value: b.String(), dynamic: true}, ""
			}
			b.WriteString(s[i+1 : i+1+end])
			i += end + 1
		case '"':
			n, dynamic, ok := doubleQuoted(s[i+1:], &b)
			v.dynamic = v.dynamic || dynamic || !ok
			if !ok {
				return shellVar{value: b.String(), dynamic: true}, ""
			}
			i += n
		case '\\':
			if i+1 < len(s) {
				i++
				if s[i] != '\n' {
					b.WriteByte(s[i])
				}
			}
		case ' ', '\t', '\n', '\r', ';', '&', '|', '(', ')', '<', '>':
			v.value = b.String()
			return v, s[i:]
		case '$', '`':
			v.dynamic = true
			b.WriteByte(c)
		default:
			b.WriteByte(c)
		}
	}
	v.value = b.String()
	return v, ""
}

// doubleQuoted reads up to and including the closing quote and returns how
// many bytes that were.
func doubleQuoted(s string, b *strings.Builder) (n int, dynamic, closed bool) {
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '"':
			return i + 1, dynamic, true
		case '\\':
			if i+1 < len(s) && strings.IndexByte("\"\\$`\n", s[i+1]) >= 0 {
				i++
				if s[i] != '\n' {
					b.WriteByte(s[i])
				}
				continue
			}
			b.WriteByte(c)
		case '$', '`':
			dynamic = true
			b.WriteByte(c)
		default:
			b.WriteByte(c)
		}
	}
	return len(s), dynamic, false
}
