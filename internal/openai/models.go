package openai

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
)

// A Model is one that a server offers.
type Model struct {
	ID     string `json:"id"`
	MaxLen int    `json:"max_model_len"` // 0 where the server does not say
}

// Models lists what the server offers.
func (c *Client) Models(ctx context.Context) ([]Model, error) {
	b, err := c.Get(ctx, "/v1/models")
	if err != nil {
		return nil, err
	}
	var list struct {
		Data []Model `json:"data"`
	}
	if err := json.Unmarshal(b, &list); err != nil {
		return nil, malformed("/v1/models is not JSON: %v", err)
	}
	return list.Data, nil
}

// Version is what the server says of itself, or "" where it says nothing.
func (c *Client) Version(ctx context.Context) (string, error) {
	return c.Told(ctx, "/version", "version")
}

// Told is the text under field in the JSON object at path, or "" where there is
// none of them.
func (c *Client) Told(ctx context.Context, path, field string) (string, error) {
	b, err := c.Get(ctx, path)
	if IsStatus(err, http.StatusNotFound) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	var v map[string]any
	if json.Unmarshal(b, &v) != nil {
		return "", nil
	}
	text, _ := v[field].(string)
	return strings.TrimSpace(text), nil
}

// IsStatus reports whether err is an answer with this status.
func IsStatus(err error, code int) bool {
	s, ok := errors.AsType[*StatusError](err)
	return ok && s.Code == code
}

// Broken reports whether err is a connection that could not be made or broke.
func Broken(err error) bool {
	_, ok := errors.AsType[*ConnError](err)
	return ok
}
