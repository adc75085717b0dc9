package openai

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/tmaxmax/go-sse"
)

// Fields is the body of a request. Engines differ in names, so the caller
// spells them; "stream" is set by Stream.
type Fields map[string]any

// A Choice is one answer.
type Choice struct {
	Index          int                        `json:"index"`
	Text           string                     `json:"text"`
	Logprobs       *Logprobs                  `json:"logprobs"`
	Finish         string                     `json:"finish_reason"`
	TokenIDs       []int                      `json:"token_ids"`
	PromptTokenIDs []int                      `json:"prompt_token_ids"`
	PromptLogprobs []map[string]PromptLogprob `json:"prompt_logprobs"`
}

// Logprobs has one element a token in each list.
type Logprobs struct {
	Tokens []string            `json:"tokens"`
	Values []Number            `json:"token_logprobs"`
	Top    []map[string]Number `json:"top_logprobs"`
}

// A PromptLogprob is one candidate at one position of the prompt.
type PromptLogprob struct {
	Logprob Number `json:"logprob"`
	Rank    int    `json:"rank"`
}

// Usage is what the server counted.
type Usage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
}

// A Completion is a whole answer, choices in the order of the prompts.
type Completion struct {
	Choices []Choice `json:"choices"`
	Usage   *Usage   `json:"usage"`
}

// Complete asks for a completion of n prompts and reads the answer in one piece.
func (c *Client) Complete(ctx context.Context, f Fields, h http.Header, n int) (Completion, error) {
	ctx, cancel := c.limit(ctx)
	defer cancel()
	res, err := c.post(ctx, "/v1/completions", f, h)
	if err != nil {
		return Completion{}, err
	}
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(io.LimitReader(res.Body, maxBody))
	if err != nil {
		return Completion{}, lost(ctx, err)
	}
	out, err := decode(b)
	if err != nil {
		return Completion{}, err
	}
	return out, out.order(n)
}

// Stream asks for a completion of n prompts as server-sent events. each is
// called with the time since the request for every event that brought tokens.
func (c *Client) Stream(ctx context.Context, f Fields, h http.Header, n int, each func(time.Duration)) (Completion, error) {
	ctx, cancel := c.limit(ctx)
	defer cancel()
	body := Fields{"stream": true, "stream_options": map[string]any{"include_usage": true}}
	maps.Copy(body, f)
	start := time.Now()
	res, err := c.post(ctx, "/v1/completions", body, h)
	if err != nil {
		return Completion{}, err
	}
	defer func() { _ = res.Body.Close() }()
	s := newStream(n)
	for ev, err := range sse.Read(res.Body, &sse.ReadConfig{MaxEventSize: 64 << 20}) {
		if err != nil {
			if ctx.Err() == nil && errors.Is(err, io.ErrUnexpectedEOF) {
				return s.out, &ConnError{err}
			}
			return s.out, lost(ctx, err)
		}
		if ev.Data == "[DONE]" {
			return s.out, s.out.order(n)
		}
		fresh, err := s.add([]byte(ev.Data))
		if err != nil {
			return s.out, err
		}
		if fresh {
			each(time.Since(start))
		}
	}
	if ctx.Err() != nil {
		return s.out, context.Cause(ctx)
	}
	return s.out, &ConnError{errors.New("the stream ended without [DONE]")}
}

// decode reads one JSON object of the completions API.
func decode(b []byte) (Completion, error) {
	var out struct {
		Completion
		Error *struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	if err := json.Unmarshal(Repair(b), &out); err != nil {
		var syn *json.SyntaxError
		if errors.As(err, &syn) && int(syn.Offset) >= len(b) {
			return Completion{}, malformed("the answer is cut after %d bytes", len(b))
		}
		return Completion{}, malformed("the answer is not JSON of the completions API: %v", err)
	}
	if out.Error != nil {
		return Completion{}, malformed("the server reported: %s", out.Error.Message)
	}
	return out.Completion, nil
}

// order puts choices in the order of the prompts: servers promise the index,
// not the place.
func (c *Completion) order(n int) error {
	if len(c.Choices) != n {
		return malformed("%d choices for %d prompts", len(c.Choices), n)
	}
	slices.SortFunc(c.Choices, func(a, b Choice) int { return a.Index - b.Index })
	for i, ch := range c.Choices {
		if ch.Index != i {
			return malformed("choice %d is missing or doubled", i)
		}
	}
	return nil
}
