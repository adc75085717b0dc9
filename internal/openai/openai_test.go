package openai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func serve(t *testing.T, h http.HandlerFunc) *Client {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	c := New(s.URL+"/v1/", Options{Timeout: 10 * time.Second, Connections: 8})
	t.Cleanup(c.Close)
	return c
}

func write(w http.ResponseWriter, text string) { _, _ = fmt.Fprint(w, text) }

const whole = `{"choices":[{"index":1,"text":"b"},{"index":0,"text":"a","token_ids":[7],"finish_reason":"length",
"logprobs":{"tokens":["x"],"token_logprobs":[-0.10000000149011612],"top_logprobs":[{"x":-0.10000000149011612,"y":NaN,"z":-Infinity}]}}],
"usage":{"prompt_tokens":3,"completion_tokens":1}}`

func TestCompleteKeepsEveryBit(t *testing.T) {
	t.Parallel()
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/completions" || r.ProtoMajor != 1 || r.Header.Get("X-Rank") != "2" {
			t.Errorf("%s %s %v", r.Proto, r.URL.Path, r.Header)
		}
		write(w, whole)
	})
	got, err := c.Complete(t.Context(), Fields{"prompt": []string{"a", "b"}}, http.Header{"X-Rank": {"2"}}, 2)
	if err != nil {
		t.Fatal(err)
	}
	first := got.Choices[0]
	if first.Text != "a" || got.Choices[1].Text != "b" || first.TokenIDs[0] != 7 || got.Usage.Prompt != 3 {
		t.Errorf("%+v", got)
	}
	if v := first.Logprobs.Values[0].Value; v != float64(float32(-0.1)) {
		t.Errorf("got %v, want the float32 -0.1 exactly", v)
	}
	top := first.Logprobs.Top[0]
	if !math.IsNaN(top["y"].Value) || !math.IsInf(top["z"].Value, -1) {
		t.Errorf("%+v", top)
	}
}

func TestAnswersThatDoNotHoldTogether(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ body, says string }{
		"cut":             {whole[:80], "cut after 80 bytes"},
		"no JSON":         {"<html>", "not JSON"},
		"one choice less": {`{"choices":[{"index":0}]}`, "1 choices for 2 prompts"},
		"doubled":         {`{"choices":[{"index":0},{"index":0}]}`, "choice 1 is missing or doubled"},
		"an error in it":  {`{"error":{"message":"out of memory"}}`, "out of memory"},
		"logprob of text": {`{"choices":[{"logprobs":{"token_logprobs":["high"]}}]}`, "no logprob"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cl := serve(t, func(w http.ResponseWriter, _ *http.Request) { write(w, c.body) })
			_, err := cl.Complete(t.Context(), Fields{}, nil, 2)
			if f, ok := errors.AsType[*FormatError](err); !ok || !strings.Contains(f.Text, c.says) {
				t.Errorf("got %v, want %q", err, c.says)
			}
		})
	}
}

func TestStreamJoinsPieces(t *testing.T) {
	t.Parallel()
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		for _, d := range []string{
			`{"choices":[{"index":0,"text":"a","token_ids":[1],"prompt_token_ids":[9],"logprobs":{"tokens":["a"],"token_logprobs":[null],"top_logprobs":[null]}}]}`,
			`{"choices":[{"index":1,"text":"x","token_ids":[3]}]}`,
			`{"choices":[{"index":0,"text":"b","token_ids":[2],"finish_reason":"stop","logprobs":{"tokens":["b"],"token_logprobs":[-2],"top_logprobs":[{"b":-2}]}}]}`,
			`{"choices":[],"usage":{"prompt_tokens":4,"completion_tokens":3}}`, `[DONE]`,
		} {
			write(w, ": a comment\r\ndata: "+d+"\n\n")
			w.(http.Flusher).Flush()
		}
	})
	n := 0
	got, err := c.Stream(t.Context(), Fields{}, nil, 2, func(time.Duration) { n++ })
	if err != nil {
		t.Fatal(err)
	}
	a := got.Choices[0]
	if a.Text != "ab" || len(a.TokenIDs) != 2 || a.Finish != "stop" || !a.Logprobs.Values[0].Null || got.Choices[1].Text != "x" || n != 3 || got.Usage.Completion != 3 || a.PromptTokenIDs[0] != 9 {
		t.Errorf("%d events, %+v", n, got)
	}
}

// TestStreamsThatBreak: a stream without its end is a broken connection, one
// that says something else is malformed.
func TestStreamsThatBreak(t *testing.T) {
	t.Parallel()
	good := "data: {\"choices\":[{\"index\":0,\"text\":\"a\"}]}\n\n"
	for name, c := range map[string]struct {
		serve  http.HandlerFunc
		broken bool
	}{
		"ends": {func(w http.ResponseWriter, _ *http.Request) { write(w, good) }, true},
		"aborted": {func(w http.ResponseWriter, _ *http.Request) {
			write(w, good)
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}, true},
		"garbage": {func(w http.ResponseWriter, _ *http.Request) { write(w, good+"data: {\"choi\n\n") }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := serve(t, c.serve).Stream(t.Context(), Fields{}, nil, 1, func(time.Duration) {})
			if err == nil || Broken(err) != c.broken {
				t.Errorf("got %v (broken %v), want broken %v", err, Broken(err), c.broken)
			}
		})
	}
}

// TestWaits: 429 and 503 are waited for as the server says; other statuses and
// broken connections are not asked again.
func TestWaits(t *testing.T) {
	t.Parallel()
	var n atomic.Int64
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		switch n.Add(1) {
		case 1:
			w.Header().Set("Retry-After", "0.01")
			w.WriteHeader(http.StatusTooManyRequests)
		case 2:
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			write(w, `{"choices":[{"index":0}]}`)
		}
	})
	if _, err := c.Complete(t.Context(), Fields{}, nil, 1); err != nil || c.Waits() != 2 || n.Load() != 3 {
		t.Errorf("%v after %d requests, %d waits", err, n.Load(), c.Waits())
	}
	for _, code := range []int{400, 401, 404, 500, 502} {
		asked := 0
		c := serve(t, func(w http.ResponseWriter, _ *http.Request) { asked++; http.Error(w, "no", code) })
		_, err := c.Complete(t.Context(), Fields{}, nil, 1)
		if !IsStatus(err, code) || asked != 1 || !strings.Contains(err.Error(), ": no") {
			t.Errorf("%d: %v after %d requests", code, err, asked)
		}
	}
	always := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	always.Timeout = 300 * time.Millisecond
	if _, err := always.Complete(t.Context(), Fields{}, nil, 1); err == nil || !strings.Contains(err.Error(), "503") {
		t.Errorf("got %v, want the time-out with the last status", err)
	}
}

func TestSlowAndGone(t *testing.T) {
	t.Parallel()
	slow := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // an unread body hides that the client went
		<-r.Context().Done()
	})
	slow.Timeout = 50 * time.Millisecond
	_, err := slow.Complete(t.Context(), Fields{}, nil, 1)
	if _, ok := errors.AsType[*TimeoutError](err); !ok {
		t.Errorf("got %v, want a time-out", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	if _, err := slow.Complete(ctx, Fields{}, nil, 1); err == nil || err.Error() != "enough" {
		t.Errorf("got %v, want the caller's cause", err)
	}
	var asked atomic.Int64
	gone := serve(t, func(http.ResponseWriter, *http.Request) { asked.Add(1); panic(http.ErrAbortHandler) })
	if _, err := gone.Complete(t.Context(), Fields{}, nil, 1); !Broken(err) || asked.Load() != 1 {
		t.Errorf("got %v after %d requests", err, asked.Load())
	}
}

// TestConnectionsAreKept: many requests in a row use one connection, and eight
// at once a bounded number.
func TestConnectionsAreKept(t *testing.T) {
	t.Parallel()
	var made atomic.Int64
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { write(w, `{"choices":[{"index":0}]}`) }))
	s.Config.ConnState = func(_ net.Conn, st http.ConnState) {
		if st == http.StateNew {
			made.Add(1)
		}
	}
	s.Start()
	defer s.Close()
	c := New(s.URL, Options{Connections: 8})
	for range 20 {
		if _, err := c.Complete(t.Context(), Fields{}, nil, 1); err != nil {
			t.Fatal(err)
		}
	}
	if made.Load() != 1 {
		t.Errorf("%d connections for requests in a row", made.Load())
	}
	for range 5 {
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				if _, err := c.Complete(t.Context(), Fields{}, nil, 1); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	}
	// A connection that is being made when another gets free is kept as well.
	if made.Load() > 12 {
		t.Errorf("%d connections for 8 at once", made.Load())
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(whole))
	f.Add([]byte(`{"choices":[{"text":"NaN \" Infinity","logprobs":{"token_logprobs":[NaN,-Infinity,null]}}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if json.Valid(b) && string(Repair(b)) != string(b) {
			t.Errorf("valid JSON was changed: %q", Repair(b))
		}
		c, err := decode(b)
		if err == nil {
			_ = c.order(len(c.Choices))
		}
	})
}

func TestNumberRoundTrip(t *testing.T) {
	t.Parallel()
	for _, v := range []float64{0, math.Copysign(0, -1), -9999, math.SmallestNonzeroFloat64, math.MaxFloat64, math.NaN(), math.Inf(-1), float64(float32(0.1))} {
		b, err := json.Marshal(Number{Value: v})
		if err != nil {
			t.Fatal(err)
		}
		var n Number
		if err := json.Unmarshal(b, &n); err != nil || math.Float64bits(n.Value) != math.Float64bits(v) && !math.IsNaN(v) || math.IsNaN(v) != math.IsNaN(n.Value) {
			t.Errorf("%v: %s, %v, %v", v, b, n, err)
		}
	}
}
