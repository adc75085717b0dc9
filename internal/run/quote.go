package run

import "strings"

const safe = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789@%+=:,./_-"

// Quote returns s so that a POSIX shell reads it back as one word.
func Quote(s string) string {
	if s != "" && strings.Trim(s, safe) == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// String is the command as text for a POSIX shell. The environment is left
// out: it is long, and plan --shell prints it where it matters.
func (c Cmd) String() string {
	words := make([]string, len(c.Argv))
	for i, a := range c.Argv {
		words[i] = Quote(a)
	}
	text := strings.Join(words, " ")
	if c.Dir != "" {
		text = "cd " + Quote(c.Dir) + " && " + text
	}
	return text
}
