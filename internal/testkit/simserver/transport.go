package simserver

import (
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
)

// A Transport carries requests to a handler without a network, so that a test
// can run in simulated time.
type Transport struct{ Handler http.Handler }

// RoundTrip runs the handler and returns when it has sent its header.
func (t Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	pr, pw := io.Pipe()
	w := &pipeWriter{body: pw, header: http.Header{}, code: http.StatusOK, ready: make(chan struct{})}
	if r.Body == nil {
		r.Body = http.NoBody
	}
	go func() {
		defer func() {
			if recover() != nil {
				w.broken.Store(true)
				_ = pw.CloseWithError(io.ErrUnexpectedEOF)
			}
			w.once.Do(func() { close(w.ready) })
			_ = pw.Close()
		}()
		t.Handler.ServeHTTP(w, r)
	}()
	select {
	case <-w.ready:
	case <-r.Context().Done():
		_ = pr.CloseWithError(r.Context().Err())
		return nil, r.Context().Err()
	}
	if w.broken.Load() {
		return nil, errors.New("EOF")
	}
	return &http.Response{StatusCode: w.code, Status: http.StatusText(w.code), Header: w.header, Body: pr, Request: r, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}, nil
}

type pipeWriter struct {
	body   *io.PipeWriter
	header http.Header
	code   int
	once   sync.Once
	ready  chan struct{}
	broken atomic.Bool
}

func (w *pipeWriter) Header() http.Header { return w.header }

func (w *pipeWriter) WriteHeader(code int) {
	w.once.Do(func() { w.code = code; close(w.ready) })
}

func (w *pipeWriter) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(b)
}

// Flush is there so that handlers can stream; a pipe holds nothing back.
func (w *pipeWriter) Flush() {}
