package openai

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// A StatusError is an answer that is neither 200 nor a request to wait.
type StatusError struct {
	Code int
	Path string
	Body string // start of what the server said
}

func (e *StatusError) Error() string {
	s := fmt.Sprintf("%s answered %d %s", e.Path, e.Code, http.StatusText(e.Code))
	if e.Body != "" {
		s += ": " + e.Body
	}
	return s
}

// A ConnError is a connection that could not be made or that broke.
type ConnError struct{ Err error }

func (e *ConnError) Error() string { return e.Err.Error() }
func (e *ConnError) Unwrap() error { return e.Err }

// A TimeoutError is the cause when a request took longer than Client.Timeout.
type TimeoutError struct{ After time.Duration }

func (e *TimeoutError) Error() string { return fmt.Sprintf("no answer within %s", e.After) }

// A FormatError is an answer that does not hold together: cut JSON, choices
// that are missing, lists of different lengths.
type FormatError struct{ Text string }

func (e *FormatError) Error() string { return e.Text }

func malformed(format string, args ...any) error { return &FormatError{fmt.Sprintf(format, args...)} }

func busy(code int) bool {
	return code == http.StatusTooManyRequests || code == http.StatusServiceUnavailable
}

// backoff is how long to wait: what the server said in seconds, else 0.1 s
// doubled each time up to 5 s.
func backoff(said string, try int) time.Duration {
	if s, err := strconv.ParseFloat(said, 64); err == nil && s >= 0 && s <= 60 {
		return time.Duration(s * float64(time.Second))
	}
	return min(100*time.Millisecond<<min(try, 10), 5*time.Second)
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}
