package openai

import (
	"bytes"
	"math"
	"strconv"
)

// A Number is a logprob as the server wrote it: the exact double, NaN and the
// infinities included, or null.
type Number struct {
	Value float64
	Null  bool
}

// UnmarshalJSON accepts a JSON number, null, and the quoted words that Repair
// puts in place of NaN and Infinity.
func (n *Number) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*n = Number{Null: true}
		return nil
	}
	v, err := strconv.ParseFloat(string(bytes.Trim(b, `"`)), 64)
	if err != nil && !math.IsInf(v, 0) {
		return malformed("%s is no logprob", b)
	}
	*n = Number{Value: v}
	return nil
}

// MarshalJSON writes the shortest text that reads back as the same double.
func (n Number) MarshalJSON() ([]byte, error) {
	switch {
	case n.Null:
		return []byte("null"), nil
	case math.IsNaN(n.Value) || math.IsInf(n.Value, 0):
		return strconv.AppendQuote(nil, strconv.FormatFloat(n.Value, 'g', -1, 64)), nil
	}
	return strconv.AppendFloat(nil, n.Value, 'g', -1, 64), nil
}

// Repair quotes NaN and Infinity outside of strings. Python writes them bare,
// which is no JSON; dropping the answer for it would hide the defect.
func Repair(b []byte) []byte {
	if !bytes.Contains(b, []byte("NaN")) && !bytes.Contains(b, []byte("Infinity")) {
		return b
	}
	out := make([]byte, 0, len(b)+16)
	inside := false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case inside && c == '\\' && i+1 < len(b):
			out = append(out, c, b[i+1])
			i++
			continue
		case c == '"':
			inside = !inside
		case !inside:
			if w := bareWord(b[i:]); w != "" {
				out = strconv.AppendQuote(out, w)
				i += len(w) - 1
				continue
			}
		}
		out = append(out, b[i])
	}
	return out
}

func bareWord(b []byte) string {
	for _, w := range []string{"NaN", "Infinity", "-Infinity"} {
		if bytes.HasPrefix(b, []byte(w)) {
			return w
		}
	}
	return ""
}
