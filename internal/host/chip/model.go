package chip

import (
	"strings"
)

// A model is a device name in words; # in a word stands for one digit.
type model struct {
	words  []string
	sm     string
	weight int // letters and digits that are literal: decides between matches
}

func newModel(name, sm string) model {
	m := model{words: strings.FieldsFunc(name, notWord), sm: sm}
	for _, w := range m.words {
		m.weight += 2*len(w) - strings.Count(w, "#")
	}
	return m
}

// GPU understands a GPU name by its words, so that L4 is not L40 and A10 not
// A100; the longest model wins. When the name was cut (nvidia-smi's table
// shortens it, a paste ends in it) it counts only if every model that it may
// stand for has the same capability.
func (r *Rules) GPU(name string, cut bool) (Match, bool) {
	whole := false // the last word, where a blank follows it
	if text, dots := strings.CutSuffix(strings.TrimSpace(name), "..."); dots {
		name, cut, whole = text, true, strings.HasSuffix(text, " ")
	}
	words := strings.FieldsFunc(name, notWord)
	best, weight := "", 0
	for _, m := range r.nvidia.models {
		if m.weight > weight && m.in(words) {
			best, weight = m.sm, m.weight
		}
	}
	if cut {
		best = r.nvidia.agreed(words, whole, best, weight)
	}
	if best == "" {
		return Match{}, false
	}
	return r.sm("device-name", best)
}

// agreed is best when no longer model could still begin in words with another
// capability.
func (f *nvidiaFile) agreed(words []string, whole bool, best string, weight int) string {
	for _, m := range f.models {
		if m.weight <= weight || !m.mayBegin(words, whole) {
			continue
		}
		if best == "" {
			best = m.sm
		}
		if best != m.sm {
			return ""
		}
	}
	return best
}

func (m model) in(words []string) bool {
	for i := 0; i+len(m.words) <= len(words); i++ {
		if m.at(words[i:]) {
			return true
		}
	}
	return false
}

func (m model) at(words []string) bool {
	for j, w := range m.words {
		if !wordIs(words[j], w) {
			return false
		}
	}
	return true
}

// mayBegin reports whether words end in the beginning of m, at least one whole
// word of it or a part of its first.
func (m model) mayBegin(words []string, whole bool) bool {
	for i := max(0, len(words)-len(m.words)); i < len(words); i++ {
		rest := words[i:]
		ok := true
		for j, w := range rest {
			last := j == len(rest)-1
			if !wordIs(w, m.words[j]) && (!last || whole || !wordBegins(w, m.words[j])) {
				ok = false
				break
			}
		}
		if ok {
			return true
		}
	}
	return false
}

func wordIs(word, pattern string) bool {
	return len(word) == len(pattern) && wordBegins(word, pattern)
}

func wordBegins(word, pattern string) bool {
	if len(word) > len(pattern) {
		return false
	}
	for i := range len(word) {
		c, p := word[i], pattern[i]
		if p == '#' && (c < '0' || c > '9') || p != '#' && lower(c) != lower(p) {
			return false
		}
	}
	return true
}

func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}
