package cann

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// A Fault is what the server does with one file.
type Fault string

// Faults. They hold for every request of a file, but for those with a number
// in their names.
const (
	Good         Fault = ""
	BusyTwice    Fault = "503, 503, then good"
	DropsOnce    Fault = "closes the connection half-way, once" // a client that resumes gets the rest
	AlwaysDrops  Fault = "closes the connection half-way"
	NoRange      Fault = "ignores Range" // answers 200 with the whole file
	WrongContent Fault = "other content of the same length"
	ErrorPage    Fault = "an HTML page with status 200"
	ErrorStatus  Fault = "an HTML page with status 403"
	Redirects    Fault = "redirects to the same file elsewhere"
	RedirectLoop Fault = "redirects to itself"
	ToPlainHTTP  Fault = "redirects to http://"
	Slow         Fault = "slow" // Rate bytes a second
	Stalls       Fault = "sends the head, then nothing"
)

// A Server is an HTTPS server on the loopback with chosen faults.
type Server struct {
	URL  string // https://127.0.0.1:PORT
	CA   string // PEM file with the certificate to trust; that of a BadCertificate server is not to be trusted
	Rate int    // bytes a second of Slow files; 0 is 256 KiB

	files  map[string]string // name to path on disk
	faults map[string]Fault
	mu     sync.Mutex
	seen   []string // "GET /name bytes=..."
	asked  map[string]int
	stop   chan struct{}
}

// Serve serves files under their base names until the test ends. faults are by
// base name.
func Serve(t testing.TB, faults map[string]Fault, files ...string) *Server {
	t.Helper()
	s := &Server{Rate: 256 << 10, files: map[string]string{}, faults: faults, asked: map[string]int{}, stop: make(chan struct{})}
	for _, f := range files {
		s.files[filepath.Base(f)] = f
	}
	srv := httptest.NewUnstartedServer(s)
	srv.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.StartTLS()
	t.Cleanup(func() {
		close(s.stop)
		srv.CloseClientConnections()
		srv.Close()
	})
	s.URL, s.CA = srv.URL, filepath.Join(t.TempDir(), "ca.pem")
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw})
	write(t, s.CA, string(block), 0o644)
	return s
}

// Requests lists what was asked, with the Range of each.
func (s *Server) Requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string{}, s.seen...)
}

// ServeHTTP answers by the base name of the path, so that a mirror may have any
// folders before it.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := path.Base(r.URL.Path)
	s.mu.Lock()
	s.seen = append(s.seen, strings.TrimSpace(r.Method+" "+r.URL.Path+" "+r.Header.Get("Range")))
	s.asked[name]++
	times := s.asked[name]
	s.mu.Unlock()
	file, ok := s.files[name]
	if !ok {
		http.Error(w, "no such key", http.StatusNotFound)
		return
	}
	b, err := os.ReadFile(file)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	s.answer(w, r, name, b, times)
}

func (s *Server) answer(w http.ResponseWriter, r *http.Request, name string, b []byte, times int) {
	fault := s.faults[name]
	switch {
	case fault == BusyTwice && times <= 2:
		w.Header().Set("Retry-After", "0")
		http.Error(w, "busy", http.StatusServiceUnavailable)
	case fault == DropsOnce && times == 1, fault == AlwaysDrops:
		drop(w, b)
	case fault == NoRange:
		w.Header().Set("Content-Length", fmt.Sprint(len(b)))
		_, _ = w.Write(b)
	case fault == ErrorPage:
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte(errorPage))
	case fault == ErrorStatus:
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte(errorPage))
	case fault == Redirects && !strings.HasPrefix(r.URL.Path, "/elsewhere/"):
		http.Redirect(w, r, "/elsewhere/"+name, http.StatusFound)
	case fault == RedirectLoop:
		http.Redirect(w, r, r.URL.Path, http.StatusFound)
	case fault == ToPlainHTTP:
		http.Redirect(w, r, "http://"+r.Host+r.URL.Path, http.StatusFound)
	case fault == Slow:
		s.slow(w, r, b)
	case fault == Stalls:
		w.Header().Set("Content-Length", fmt.Sprint(len(b)))
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		s.wait(r, time.Hour)
	case fault == WrongContent:
		other := bytes.Clone(b)
		other[len(other)/2] ^= 1
		http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(other))
	default:
		http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(b))
	}
}

// drop sends half of b and closes the connection.
func drop(w http.ResponseWriter, b []byte) {
	w.Header().Set("Content-Length", fmt.Sprint(len(b)))
	w.Header().Set("Accept-Ranges", "bytes")
	_, _ = w.Write(b[:len(b)/2])
	w.(http.Flusher).Flush()
	panic(http.ErrAbortHandler)
}

// slow sends b, or the rest of it that a client asks for which has the rest of
// the same content, at the rate of the server.
func (s *Server) slow(w http.ResponseWriter, r *http.Request, b []byte) {
	const tick = 50 * time.Millisecond
	tag := fmt.Sprintf("%q", fmt.Sprintf("%x", sha256.Sum256(b))[:16])
	w.Header().Set("ETag", tag)
	var from int
	if n, err := fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-", &from); n == 1 && err == nil && from < len(b) && r.Header.Get("If-Range") == tag {
		w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, len(b)-1, len(b)))
		b = b[from:]
		w.Header().Set("Content-Length", fmt.Sprint(len(b)))
		w.WriteHeader(http.StatusPartialContent)
	}
	w.Header().Set("Content-Length", fmt.Sprint(len(b)))
	step := max(1, s.Rate/int(time.Second/tick))
	for len(b) > 0 {
		n := min(step, len(b))
		if _, err := w.Write(b[:n]); err != nil {
			return
		}
		w.(http.Flusher).Flush()
		b = b[n:]
		select {
		case <-s.stop:
			return
		case <-time.After(tick):
		}
	}
}

func (s *Server) wait(r *http.Request, d time.Duration) {
	select {
	case <-s.stop:
	case <-r.Context().Done():
	case <-time.After(d):
	}
}
