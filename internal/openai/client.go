// Package openai talks to the completions endpoint of an OpenAI-compatible
// server over HTTP/1.1 with kept connections. It exposes what a bitwise
// comparison needs and the maintained clients hide: token ids, exact values
// (also ones that are no JSON, such as NaN), prompt logprobs and engine
// specific fields. It waits when a server says 429 or 503 and retries nothing
// else: an answer that was begun is never asked for twice.
package openai

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

// maxBody bounds an answer in memory, in bytes.
const maxBody = 256 << 20

// A Client is one server. It is safe for use by many goroutines.
type Client struct {
	Base    string        // "http://host:8000", without /v1
	Key     string        // sent as a bearer token; may be empty
	Timeout time.Duration // of one request with all its waiting; 0 is none
	HTTP    *http.Client
	waits   atomic.Int64
}

// Options say how to reach a server.
type Options struct {
	Key         string
	Timeout     time.Duration
	Connections int            // kept open at once
	Roots       *x509.CertPool // nil is the system's
}

// New is a client of the server at base; a trailing /v1 is not part of it.
func New(base string, o Options) *Client {
	base = strings.TrimSuffix(strings.TrimRight(base, "/"), "/v1")
	t := &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		MaxIdleConns:        max(o.Connections, 2),
		MaxIdleConnsPerHost: max(o.Connections, 2),
		// A few more than are used at once: is the server still there is asked beside them.
		MaxConnsPerHost:     max(o.Connections, 2) + 4,
		IdleConnTimeout:     90 * time.Second,
		TLSHandshakeTimeout: 10 * time.Second,
		TLSClientConfig:     &tls.Config{RootCAs: o.Roots, MinVersion: tls.VersionTLS12},
		// HTTP/2 would put every request on one connection; servers are used over 1.1.
		TLSNextProto:       map[string]func(string, *tls.Conn) http.RoundTripper{},
		DisableCompression: true,
	}
	return &Client{Base: base, Key: o.Key, Timeout: o.Timeout, HTTP: &http.Client{Transport: t}}
}

// Waits is how often a server asked to wait (429, 503) so far.
func (c *Client) Waits() int64 { return c.waits.Load() }

// Close lets go of idle connections.
func (c *Client) Close() { c.HTTP.CloseIdleConnections() }

// Get fetches path, such as "/metrics", and returns the body of a 200.
func (c *Client) Get(ctx context.Context, path string) ([]byte, error) {
	ctx, cancel := c.limit(ctx)
	defer cancel()
	res, err := c.send(ctx, http.MethodGet, path, nil, nil)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(io.LimitReader(res.Body, maxBody))
	if err != nil {
		return nil, lost(ctx, err)
	}
	return b, nil
}

// Post sends v as JSON to path and returns the open answer of a 200.
func (c *Client) post(ctx context.Context, path string, v any, header http.Header) (*http.Response, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return c.send(ctx, http.MethodPost, path, body, header)
}

func (c *Client) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	if c.Timeout <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, c.Timeout, &TimeoutError{c.Timeout})
}

// send does one exchange, waiting as long as the server asks to.
func (c *Client) send(ctx context.Context, method, path string, body []byte, header http.Header) (*http.Response, error) {
	waited := "" // for what, when the time runs out
	for try := 0; ; try++ {
		req, err := http.NewRequestWithContext(ctx, method, c.Base+path, bytes.NewReader(body))
		if err != nil {
			return nil, err
		}
		maps.Copy(req.Header, header)
		if body != nil {
			req.Header.Set("Content-Type", "application/json")
		}
		if c.Key != "" {
			req.Header.Set("Authorization", "Bearer "+c.Key)
		}
		res, err := c.HTTP.Do(req)
		if err != nil {
			if waited != "" && ctx.Err() != nil {
				return nil, fmt.Errorf("%w, last answer %s", lost(ctx, err), waited)
			}
			return nil, lost(ctx, err)
		}
		if res.StatusCode == http.StatusOK {
			return res, nil
		}
		text, _ := io.ReadAll(io.LimitReader(res.Body, 4<<10))
		_ = res.Body.Close()
		if !busy(res.StatusCode) {
			return nil, &StatusError{Code: res.StatusCode, Path: path, Body: strings.TrimSpace(string(text))}
		}
		c.waits.Add(1)
		waited = fmt.Sprintf("%d %s", res.StatusCode, http.StatusText(res.StatusCode))
		if err := pause(ctx, backoff(res.Header.Get("Retry-After"), try)); err != nil {
			return nil, fmt.Errorf("%w, last answer %s", err, waited)
		}
	}
}

// lost names why an exchange broke: the caller's context first, then the connection.
func lost(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var ne net.Error
	if errors.As(err, &ne) && ne.Timeout() {
		return err
	}
	return &ConnError{err}
}
