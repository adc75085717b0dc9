// Package divergence reads what other harnesses print when they compare answers
// for batch invariance: vLLM's tests and scripts, tables of repeats, text diffs,
// lists of logprobs. It says what was compared, what differs, and what such a
// text cannot show.
package divergence

import (
	"bytes"
	"fmt"
	"math"
	"strings"
)

// Word is what a text shows about answers.
type Word string

// The words. Deterministic and invariant are two things: answers can repeat
// exactly and still depend on the batch.
const (
	Variant   Word = "variant"              // answers differ
	Repeats   Word = "repeats, but variant" // each arrangement repeats itself, the arrangements differ
	Tied      Word = "tie"                  // equal logprobs: the choice is open, nothing differs yet
	Truncated Word = "truncated"            // one answer, cut
	Failing   Word = "tests failed"         // a summary that names no difference
)

// A Report is what a text shows.
type Report struct {
	Word     Word
	Sentence string
	Try      string
	Prompts  int     // that differ
	Same     int     // that were found equal
	MaxDelta float64 // of a logprob
	Prompt   int     // where that is
	Token    int
	SameIDs  bool // all tokens that are shown are the same
	Ties     []Tie
	Tokens   int // of a cut answer
	Failed   int
	Passed   int
}

// A Tie is candidates of exactly the same logprob.
type Tie struct {
	Step  int
	Names []string
	Value float64
}

// maxLine bounds a line that is kept; longer ones are cut.
const maxLine = 64 << 10

// A Scanner takes a text in pieces. It keeps what it counts, not the text, but
// for the first bytes of a text that is JSON.
type Scanner struct {
	line  []byte
	head  []byte // the first maxLine bytes of all
	lines int
	blocks
	script
	table
	other
}

// Write takes the next piece; it never fails.
func (s *Scanner) Write(p []byte) (int, error) {
	n := len(p)
	if room := maxLine - len(s.head); room > 0 {
		s.head = append(s.head, p[:min(room, len(p))]...)
	}
	for len(p) > 0 {
		i := bytes.IndexByte(p, '\n')
		end := i
		if i < 0 {
			end = len(p)
		}
		if room := maxLine - len(s.line); room > 0 {
			s.line = append(s.line, p[:min(end, room)]...)
		}
		if i < 0 {
			break
		}
		s.take()
		p = p[i+1:]
	}
	return n, nil
}

func (s *Scanner) take() {
	text := strings.TrimRight(string(s.line), "\r")
	s.line = s.line[:0]
	s.lines++
	s.blocks.take(text)
	s.script.take(text)
	s.table.take(text)
	s.other.take(text)
}

// Report is what the text shows, or nil where it is of another kind.
func (s *Scanner) Report() *Report {
	if len(s.line) > 0 {
		s.take()
	}
	for _, r := range []*Report{s.blocks.report(), s.script.report(), s.table.report(), s.other.report(), tops(s.head), event(s.head)} {
		if r != nil {
			return r
		}
	}
	return nil
}

// differ is the report of prompts that differ.
func differ(prompts, same int, worst float64, prompt, token int, sameIDs bool) *Report {
	r := &Report{
		Word: Variant, Prompts: prompts, Same: same, MaxDelta: worst, Prompt: prompt, Token: token, SameIDs: sameIDs,
		Try: "verify with the arrangements apart: invar verify server --url URL --html report.html",
	}
	r.Sentence = fmt.Sprintf("answers change with the batch: %d prompts differ in what is shown, by up to %.3e (prompt %d, token %d)", prompts, worst, prompt, token)
	if same > 0 {
		r.Sentence += fmt.Sprintf("; %d are the same", same)
	}
	if sameIDs {
		r.Sentence += "; all tokens are the same, so a comparison of texts would have passed"
	}
	return r
}

func larger(a, b float64) bool { return b > a || math.IsNaN(b) }
