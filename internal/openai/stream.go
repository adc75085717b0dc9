package openai

// A stream joins the pieces of a streamed completion.
type stream struct {
	out Completion
	at  map[int]int // index of a choice -> place in out.Choices
}

func newStream(n int) *stream { return &stream{at: make(map[int]int, n)} }

// add takes one event and says whether it brought tokens.
func (s *stream) add(data []byte) (bool, error) {
	c, err := decode(data)
	if err != nil {
		return false, err
	}
	if c.Usage != nil {
		s.out.Usage = c.Usage
	}
	fresh := false
	for _, ch := range c.Choices {
		fresh = s.join(ch) || fresh
	}
	return fresh, nil
}

func (s *stream) join(d Choice) bool {
	i, ok := s.at[d.Index]
	if !ok {
		i = len(s.out.Choices)
		s.at[d.Index] = i
		s.out.Choices = append(s.out.Choices, Choice{Index: d.Index})
	}
	c := &s.out.Choices[i]
	c.Text += d.Text
	c.TokenIDs = append(c.TokenIDs, d.TokenIDs...)
	if len(d.PromptTokenIDs) > 0 {
		c.PromptTokenIDs = d.PromptTokenIDs
	}
	if d.Finish != "" {
		c.Finish = d.Finish
	}
	if d.Logprobs != nil {
		if c.Logprobs == nil {
			c.Logprobs = &Logprobs{}
		}
		c.Logprobs.Tokens = append(c.Logprobs.Tokens, d.Logprobs.Tokens...)
		c.Logprobs.Values = append(c.Logprobs.Values, d.Logprobs.Values...)
		c.Logprobs.Top = append(c.Logprobs.Top, d.Logprobs.Top...)
	}
	return d.Text != "" || len(d.TokenIDs) > 0
}
