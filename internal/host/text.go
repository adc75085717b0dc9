package host

import (
	"bytes"
	"encoding/binary"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf16"
)

var (
	escapes = regexp.MustCompile("\x1b\\[[0-9;?]*[A-Za-z]|\x1b\\][^\x07]*\x07")
	// What editors, browsers and chat programs make of a terminal's characters.
	substitutes = strings.NewReplacer(
		"\u00a0", " ", "\u3000", " ", "\ufeff", "",
		"│", "|", "┃", "|", "║", "|", "｜", "|", "：", ":", "％", "%", "（", "(", "）", ")",
		"\r\n", "\n", "\r", "\n",
	)
	quotes = regexp.MustCompile(`(?m)^(?:> ?)+`)
	// What cat -n, log collectors and image builds set before the rows of a table.
	lineNumbers = regexp.MustCompile(`(?m)^[ \t]*[0-9]+[:.)]?[ \t]*([|+][-=+| ])`)
	rowPrefixes = regexp.MustCompile(`(?m)^[^|\n]*?[ \t](?:\| )?([|+][-=+| ][^\n]*[|+])[ \t]*$`)
)

// maxText bounds what is parsed of one answer.
const maxText = 1 << 20

// clean makes pasted text what the tool printed.
func clean(text string) string {
	if len(text) > maxText {
		text = text[:maxText]
	}
	text = strings.ToValidUTF8(text, "\ufffd")
	text = substitutes.Replace(escapes.ReplaceAllString(text, ""))
	text = lineNumbers.ReplaceAllString(quotes.ReplaceAllString(text, ""), "$1")
	return rowPrefixes.ReplaceAllString(text, "$1")
}

// fromUTF16 is b as UTF-8 when it begins with a mark of UTF-16, which is what
// PowerShell writes when an answer is sent to a file.
func fromUTF16(b []byte) []byte {
	var order binary.ByteOrder
	switch {
	case bytes.HasPrefix(b, []byte{0xff, 0xfe}):
		order = binary.LittleEndian
	case bytes.HasPrefix(b, []byte{0xfe, 0xff}):
		order = binary.BigEndian
	default:
		return b
	}
	units := make([]uint16, 0, len(b)/2)
	for b = b[2:]; len(b) >= 2; b = b[2:] {
		units = append(units, order.Uint16(b))
	}
	return []byte(string(utf16.Decode(units)))
}

func lines(text string) []string {
	out := strings.Split(text, "\n")
	for i := range out {
		out[i] = strings.TrimRight(out[i], " \t")
	}
	return out
}

// cells splits a table row "| a | b |"; ok is false for other lines.
func cells(line string) (out []string, ok bool) {
	line = strings.TrimSpace(line)
	if !strings.HasPrefix(line, "|") || strings.Trim(line, "|-=+ ") == "" {
		return nil, false
	}
	line = strings.TrimSuffix(strings.TrimPrefix(line, "|"), "|")
	for c := range strings.SplitSeq(line, "|") {
		out = append(out, strings.TrimSpace(c))
	}
	return out, true
}

// border reports whether line is a rule of a table, and whether it is whole.
func border(line string) (is, whole bool) {
	s := strings.TrimSpace(line)
	if len(s) < 4 || strings.Trim(s, "+-=|") != "" {
		return false, false
	}
	return true, strings.HasPrefix(s, "+") && strings.HasSuffix(s, "+") || strings.HasPrefix(s, "|") && strings.HasSuffix(s, "|")
}

// keyValue splits "key : value".
func keyValue(line string) (key, value string, ok bool) {
	key, value, ok = strings.Cut(line, ":")
	key = strings.Join(strings.Fields(key), " ")
	return key, strings.TrimSpace(value), ok && key != ""
}

// number is the leading integer of s, and 0 when there is none.
func number(s string) int64 {
	s = strings.TrimSpace(s)
	end := 0
	for end < len(s) && s[end] >= '0' && s[end] <= '9' {
		end++
	}
	n, err := strconv.ParseInt(s[:end], 10, 64)
	if err != nil {
		return 0
	}
	return n
}

func isNumber(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// given is s, or "" where a tool prints a word for "not known".
func given(s string) string {
	s = strings.TrimSpace(s)
	switch strings.ToLower(strings.Trim(s, "[]")) {
	case "", "n/a", "na", "-", "--", "not supported", "unknown", "unknown error", "none", "xxx", "removed", "insufficient permissions":
		return ""
	}
	return s
}

// releaseText is s when it is a version of two or three parts, with what NVIDIA and
// Ascend hang on it, and "" for N/A, XXX.XX and sentences.
func releaseText(s string) string {
	word, _, _ := strings.Cut(strings.TrimSpace(s), " ")
	if releasePattern.MatchString(word) {
		return word
	}
	return ""
}

var (
	releasePattern = regexp.MustCompile(`^[0-9]+(?:\.[0-9]+)+(?:\.?(?:rc|RC|alpha|beta|b|t|T)[0-9.]+)*$`)
	busPattern     = regexp.MustCompile(`(?i)\b(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]\b`)
)
