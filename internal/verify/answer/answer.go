// Package answer holds what one request was answered and says whether two
// answers are the same: token ids, logprobs as exact doubles, top lists as
// sets where a tie at the cut leaves the choice open.
package answer

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/invar-ops/invar/internal/openai"
)

// An Entry is a candidate token with its logprob.
type Entry struct {
	Key   string        `json:"k"` // "token_id:N", or the text where the server gives no ids
	Value openai.Number `json:"v"`
}

// A Step is one position of an answer.
type Step struct {
	Key   string        `json:"k"`           // the token that was chosen
	Value openai.Number `json:"v"`           // its logprob
	Top   []Entry       `json:"t,omitempty"` // largest first
}

// An Answer is what one prompt was answered.
type Answer struct {
	Steps  []Step `json:"s"`
	Prompt []Step `json:"p,omitempty"` // prompt_logprobs, where they were asked for
	Finish string `json:"f,omitempty"`
	HasIDs bool   `json:"i,omitempty"` // the server returned token ids
}

// From makes an answer of a choice and checks that its parts fit together.
// want says whether logprobs and prompt logprobs were asked for.
func From(c openai.Choice, logprobs, prompt bool) (Answer, error) {
	a := Answer{Finish: c.Finish, HasIDs: len(c.TokenIDs) > 0}
	l := c.Logprobs
	if logprobs && l == nil {
		return a, &openai.FormatError{Text: "the answer has no logprobs though they were asked for"}
	}
	n := len(c.TokenIDs)
	if l != nil {
		if a.HasIDs && n != len(l.Values) {
			return a, &openai.FormatError{Text: fmt.Sprintf("%d token ids but %d logprobs", n, len(l.Values))}
		}
		if n = len(l.Values); len(l.Tokens) != n || (len(l.Top) != n && len(l.Top) != 0) {
			return a, &openai.FormatError{Text: fmt.Sprintf("%d tokens, %d logprobs, %d top lists", len(l.Tokens), n, len(l.Top))}
		}
	}
	for i := range n {
		a.Steps = append(a.Steps, step(c, i))
	}
	if prompt {
		if len(c.PromptLogprobs) == 0 {
			return a, &openai.FormatError{Text: "the answer has no prompt_logprobs though they were asked for"}
		}
		for i, m := range c.PromptLogprobs {
			a.Prompt = append(a.Prompt, promptStep(c, i, m))
		}
	}
	return a, nil
}

func step(c openai.Choice, i int) Step {
	var s Step
	if c.Logprobs != nil {
		s.Key, s.Value = c.Logprobs.Tokens[i], c.Logprobs.Values[i]
		if i < len(c.Logprobs.Top) {
			for k, v := range c.Logprobs.Top[i] {
				s.Top = append(s.Top, Entry{k, v})
			}
			sortEntries(s.Top)
		}
	}
	if len(c.TokenIDs) > 0 {
		s.Key = "token_id:" + strconv.Itoa(c.TokenIDs[i])
	}
	return s
}

// promptStep has the token of the prompt as chosen where its id is known.
func promptStep(c openai.Choice, i int, m map[string]openai.PromptLogprob) Step {
	var s Step
	for k, v := range m {
		s.Top = append(s.Top, Entry{k, v.Logprob})
	}
	sortEntries(s.Top)
	if i < len(c.PromptTokenIDs) {
		s.Key = strconv.Itoa(c.PromptTokenIDs[i])
		s.Value = m[s.Key].Logprob
	}
	return s
}

// sortEntries puts the largest first and equal ones by key: what comes from a
// map has no order of its own.
func sortEntries(e []Entry) {
	slices.SortFunc(e, func(a, b Entry) int {
		if c := cmp.Compare(b.Value.Value, a.Value.Value); c != 0 {
			return c
		}
		return cmp.Compare(a.Key, b.Key)
	})
}

// NaN reports whether a logprob of a is no number.
func (a Answer) NaN() bool {
	return slices.ContainsFunc(a.Steps, func(s Step) bool {
		return math.IsNaN(s.Value.Value) || slices.ContainsFunc(s.Top, func(e Entry) bool { return math.IsNaN(e.Value.Value) })
	})
}
