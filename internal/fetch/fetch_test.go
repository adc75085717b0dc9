package fetch

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/invar-ops/invar/internal/report"
)

// payload is n bytes that no compression shortens, and their digest.
func payload(n int) ([]byte, string) {
	b := make([]byte, n)
	r := rand.New(rand.NewPCG(1, uint64(n)))
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	sum := sha256.Sum256(b)
	return b, hex.EncodeToString(sum[:])
}

// pins is none for an empty digest.
func pins(sum string) []string {
	if sum == "" {
		return nil
	}
	return []string{sum}
}

// serve starts a TLS server on loopback and gives options that trust it.
func serve(t *testing.T, h http.Handler) (string, Options) {
	t.Helper()
	s := httptest.NewTLSServer(h)
	t.Cleanup(s.Close)
	return s.URL, Options{Cache: t.TempDir(), CAFiles: []string{caFile(t, s)}, Stage: "stage 1", wait: time.Millisecond, stall: 5 * time.Second}
}

func caFile(t *testing.T, s *httptest.Server) string {
	t.Helper()
	f := filepath.Join(t.TempDir(), "ca.pem")
	b := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	if err := os.WriteFile(f, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return f
}

func content(b []byte) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"1"`)
		http.ServeContent(w, r, "x.run", time.Time{}, bytes.NewReader(b))
	})
}

// cut breaks the connection after limit bytes of each answer.
func cut(b []byte, limit int, ranges bool, seen *[]string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*seen = append(*seen, r.Header.Get("Range"))
		rest := b
		if from := r.Header.Get("Range"); from != "" && ranges {
			var n int
			fmt.Sscanf(from, "bytes=%d-", &n)
			rest = b[n:]
			w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", n, len(b)-1, len(b)))
		}
		w.Header().Set("Content-Length", fmt.Sprint(len(rest)))
		w.Header().Set("ETag", `"1"`)
		if len(rest) < len(b) {
			w.WriteHeader(http.StatusPartialContent)
		}
		_, _ = w.Write(rest[:min(limit, len(rest))])
		if len(rest) > limit {
			panic(http.ErrAbortHandler)
		}
	})
}

func TestGetKeepsByDigestAndAsksOnce(t *testing.T) {
	t.Parallel()
	b, sum := payload(3 << 20)
	var asked atomic.Int32
	url, o := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		content(b).ServeHTTP(w, r)
	}))
	item := Item{Name: "x.run", URLs: []string{url + "/x.run"}, Pins: pins(sum), Size: int64(len(b))}
	f, err := Get(t.Context(), item, o)
	if err != nil {
		t.Fatal(err)
	}
	got, _ := os.ReadFile(f.Path)
	if !bytes.Equal(got, b) || f.SHA256 != sum || f.Size != int64(len(b)) || f.Cached {
		t.Fatalf("got %+v", f)
	}
	o.Offline = true
	again, err := Get(t.Context(), item, o)
	if err != nil || !again.Cached || asked.Load() != 1 {
		t.Fatalf("second time: %+v, %v, asked %d times", again, err, asked.Load())
	}
	if again.From != url+"/x.run" {
		t.Errorf("out of the cache it comes from %q, want %s", again.From, url+"/x.run")
	}
	if err := os.RemoveAll(filepath.Join(o.Cache, "from")); err != nil {
		t.Fatal(err)
	}
	if again, _ = Get(t.Context(), item, o); again.From != FromCache {
		t.Errorf("without a note it comes from %q, want %s", again.From, FromCache)
	}
	// A damaged object is not believed, and a cache that has it not fails offline.
	if err := os.WriteFile(f.Path, b[1:], 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Get(t.Context(), item, o); report.ExitCode(err) != report.Unmet {
		t.Errorf("offline with a damaged cache: got %v (exit %d)", err, report.ExitCode(err))
	}
	o.Offline = false
	if _, err := Get(t.Context(), item, o); err != nil || asked.Load() != 2 {
		t.Errorf("a damaged object: %v, asked %d times", err, asked.Load())
	}
}

// Passwords in addresses go to the server and nowhere else.
func TestGetKeepsPasswordsToItself(t *testing.T) {
	t.Parallel()
	b, sum := payload(1000)
	url, o := serve(t, content(b))
	f, err := Get(t.Context(), Item{Name: "x", URLs: []string{strings.Replace(url, "https://", "https://me:secret@", 1) + "/x"}, Pins: pins(sum)}, o)
	if err != nil || strings.Contains(f.From, "secret") || !strings.Contains(f.From, "/x") {
		t.Errorf("got %+v, %v", f, err)
	}
}

func TestGetGoesOnWhereItBrokeOff(t *testing.T) {
	t.Parallel()
	b, sum := payload(1 << 20)
	for _, tc := range []struct {
		name   string
		ranges bool
		pin    string
		ok     bool
	}{
		{"ranges, pinned", true, sum, true},
		{"ranges, entity tag only", true, "", true},
		{"a server without ranges", false, sum, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var seen []string
			url, o := serve(t, cut(b, 300<<10, tc.ranges, &seen))
			f, err := Get(t.Context(), Item{Name: "x.run", URLs: []string{url}, Pins: pins(tc.pin)}, o)
			if !tc.ok {
				if err == nil || len(seen) > bodies+1 {
					t.Fatalf("got %v after %d requests", err, len(seen))
				}
				return
			}
			if err != nil || f.SHA256 != sum {
				t.Fatalf("got %+v, %v", f, err)
			}
			if len(seen) != 4 || seen[0] != "" || seen[3] == "" {
				t.Errorf("ranges asked for: %q", seen)
			}
		})
	}
}

func TestGetGoesOnInTheNextProcess(t *testing.T) {
	t.Parallel()
	b, sum := payload(1 << 20)
	var seen []string
	url, o := serve(t, cut(b, 400<<10, true, &seen))
	item := Item{Name: "x.run", URLs: []string{url}, Pins: pins(sum)}
	ctx, cancel := context.WithCancel(t.Context())
	stop := o
	stop.wait = time.Hour // the pause after the first break is where the run is interrupted
	time.AfterFunc(300*time.Millisecond, cancel)
	if _, err := Get(ctx, item, stop); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want an interrupt", err)
	}
	if _, err := Get(t.Context(), item, o); err != nil {
		t.Fatal(err)
	}
	if len(seen) != 3 || seen[1] != fmt.Sprintf("bytes=%d-", 400<<10) {
		t.Errorf("ranges asked for: %q", seen)
	}
	left, _ := filepath.Glob(filepath.Join(o.Cache, "partial", "*"))
	if len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

// A partial file of other content is noticed by its digest, and fetched as a whole.
func TestGetDoesNotBelieveWhatItJoins(t *testing.T) {
	t.Parallel()
	b, sum := payload(1 << 20)
	url, o := serve(t, content(b))
	part := filepath.Join(o.Cache, "partial", sum[:32])
	if err := os.MkdirAll(filepath.Dir(part), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(part, make([]byte, 1000), 0o600); err != nil {
		t.Fatal(err)
	}
	if f, err := Get(t.Context(), Item{Name: "x.run", URLs: []string{url}, Pins: pins(sum)}, o); err != nil || f.SHA256 != sum {
		t.Fatalf("got %+v, %v", f, err)
	}
}

func TestGetTriesAgain(t *testing.T) {
	t.Parallel()
	b, sum := payload(100 << 10)
	for _, status := range []int{http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusBadGateway} {
		var n atomic.Int32
		url, o := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if n.Add(1) < 3 {
				w.Header().Set("Retry-After", "0")
				w.WriteHeader(status)
				return
			}
			content(b).ServeHTTP(w, r)
		}))
		if _, err := Get(t.Context(), Item{Name: "x", URLs: []string{url}, Pins: pins(sum)}, o); err != nil || n.Load() != 3 {
			t.Errorf("%d: %v after %d requests", status, err, n.Load())
		}
	}
}

func TestGetRefuses(t *testing.T) {
	t.Parallel()
	b, sum := payload(64 << 10)
	other, _ := payload(64<<10 + 1)
	page := func(text string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, text) })
	}
	for _, tc := range []struct {
		name    string
		handler http.Handler
		item    Item
		want    []string // in the error, its got or its hint
	}{
		{"an HTML page", page("\n<!DOCTYPE html><html><head><title>Sign&nbsp;in</title>"), Item{}, []string{"an HTML page", "Sign", "--mirror"}},
		{"an HTML page instead of a file of known size", page("<html><title>404</title>"), Item{Size: 65536, Pins: pins(sum)}, []string{"an HTML page", "404"}},
		{"the XML of an object store", page("<?xml version=\"1.0\"?><Error><Code>NoSuchKey</Code></Error>"), Item{}, []string{"NoSuchKey"}},
		{"not found", http.NotFoundHandler(), Item{}, []string{"404"}},
		{"other content", content(b), Item{Pins: pins(strings.Repeat("ab", 32))}, []string{"not the content that is pinned", sum, "--accept-digest"}},
		{"too long", content(other), Item{Pins: pins(sum), Size: 65536}, []string{"another size", "65537"}},
		{"too short", content(b[:100]), Item{Pins: pins(sum), Size: 65536}, []string{"cut short", "100 bytes"}},
		{"to plain http", http.RedirectHandler("http://127.0.0.1:1/x", http.StatusFound), Item{Pins: pins(sum)}, []string{"redirected from https to http"}},
		{"unavailable for good", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) }), Item{}, []string{"503", "try later"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			url, o := serve(t, tc.handler)
			tc.item.Name, tc.item.URLs = "x.run", []string{url + "/x.run"}
			_, err := Get(t.Context(), tc.item, o)
			p, ok := errors.AsType[*report.Problem](err)
			if !ok {
				t.Fatalf("got %v, want a problem", err)
			}
			text := p.Error() + p.Got + p.Hint
			for _, w := range tc.want {
				if !strings.Contains(text, w) {
					t.Errorf("%q lacks %q", text, w)
				}
			}
			if objects, _ := filepath.Glob(filepath.Join(o.Cache, "sha256", "*")); len(objects) != 0 {
				t.Errorf("kept %v", objects)
			}
		})
	}
}

func TestGetVerifiesTLS(t *testing.T) {
	t.Parallel()
	b, sum := payload(1000)
	url, o := serve(t, content(b))
	o.CAFiles = nil
	_, err := Get(t.Context(), Item{Name: "x", URLs: []string{url}, Pins: pins(sum)}, o)
	p, ok := errors.AsType[*report.Problem](err)
	if !ok || !strings.Contains(p.Hint, "--ca-file") || !strings.Contains(p.Got, "Acme Co") {
		t.Fatalf("got %v (%+v)", err, p)
	}
}

func TestPlainHTTPNeedsAPin(t *testing.T) {
	t.Parallel()
	b, sum := payload(1000)
	s := httptest.NewServer(content(b))
	t.Cleanup(s.Close)
	o := Options{Cache: t.TempDir()}
	if _, err := Get(t.Context(), Item{Name: "x", URLs: []string{s.URL}}, o); err == nil {
		t.Error("unpinned content came over plain http")
	}
	if _, err := Get(t.Context(), Item{Name: "x", URLs: []string{s.URL}, Pins: pins(sum)}, o); err != nil {
		t.Error(err)
	}
}

func TestMirrorsComeFirst(t *testing.T) {
	t.Parallel()
	b, sum := payload(5000)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "x.run"), b, 0o600); err != nil {
		t.Fatal(err)
	}
	url, o := serve(t, http.StripPrefix("/pub", content(b)))
	item := Item{Name: "x.run", URLs: []string{"https://127.0.0.1:1/x.run"}, Pins: pins(sum)}
	for _, tc := range []struct {
		mirrors []string
		offline bool
		from    string
	}{
		{[]string{dir}, true, dir},
		{[]string{"file://" + dir}, true, dir},
		{[]string{filepath.Join(dir, "x.run")}, false, dir},
		{[]string{filepath.Join(dir, "none"), dir}, true, dir},
		{[]string{url + "/pub"}, false, url + "/pub/x.run"},
	} {
		o.Cache, o.Mirrors, o.Offline = t.TempDir(), tc.mirrors, tc.offline
		f, err := Get(t.Context(), item, o)
		if err != nil || !strings.HasPrefix(f.From, tc.from) {
			t.Errorf("%v: got %+v, %v", tc.mirrors, f, err)
		}
	}
	o.Cache, o.Mirrors, o.Offline = t.TempDir(), []string{url}, true
	_, err := Get(t.Context(), item, o)
	p, ok := errors.AsType[*report.Problem](err)
	if !ok || p.Code != report.Unmet || strings.Count(p.Got, "--offline") != 2 {
		t.Errorf("offline: got %v (%+v)", err, p)
	}
	// A folder whose file is another one does not stop the next place.
	bad := t.TempDir()
	if err := os.WriteFile(filepath.Join(bad, "x.run"), b[1:], 0o600); err != nil {
		t.Fatal(err)
	}
	o.Mirrors = []string{bad, dir}
	if _, err := Get(t.Context(), item, o); err != nil {
		t.Error(err)
	}
}

func TestSilenceEndsAConnection(t *testing.T) {
	t.Parallel()
	b, sum := payload(200 << 10)
	var n atomic.Int32
	url, o := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n.Add(1) > 1 {
			content(b).ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Length", fmt.Sprint(len(b)))
		_, _ = w.Write(b[:1000])
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	o.stall = 200 * time.Millisecond
	if _, err := Get(t.Context(), Item{Name: "x", URLs: []string{url}, Pins: pins(sum)}, o); err != nil || n.Load() != 2 {
		t.Errorf("got %v after %d requests", err, n.Load())
	}
}

// A proxy is asked for a host that only it can reach.
func TestProxyIsUsed(t *testing.T) {
	t.Parallel()
	b, sum := payload(1000)
	url, o := serve(t, content(b))
	var connected atomic.Int32
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		connected.Add(1)
		tunnel(w, strings.TrimPrefix(url, "https://"))
	}))
	t.Cleanup(proxy.Close)
	o.Env = []string{"https_proxy=" + proxy.URL}
	// The test server's certificate is for example.com.
	if _, err := Get(t.Context(), Item{Name: "x", URLs: []string{"https://example.com/x"}, Pins: pins(sum)}, o); err != nil || connected.Load() == 0 {
		t.Errorf("got %v, %d connections through the proxy", err, connected.Load())
	}
}

func tunnel(w http.ResponseWriter, to string) {
	up, err := net.Dial("tcp", to)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	w.WriteHeader(http.StatusOK)
	down, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	go func() { _, _ = io.Copy(up, down); _ = up.Close() }()
	go func() { _, _ = io.Copy(down, up); _ = down.Close() }()
}

func TestTwoAtOnceFetchOnce(t *testing.T) {
	t.Parallel()
	b, sum := payload(1 << 20)
	var n atomic.Int32
	url, o := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n.Add(1)
		time.Sleep(50 * time.Millisecond)
		content(b).ServeHTTP(w, r)
	}))
	errs := make(chan error, 4)
	for range cap(errs) {
		go func() {
			_, err := Get(t.Context(), Item{Name: "x", URLs: []string{url}, Pins: pins(sum)}, o)
			errs <- err
		}()
	}
	for range cap(errs) {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if n.Load() != 1 {
		t.Errorf("asked %d times, want 1", n.Load())
	}
}
