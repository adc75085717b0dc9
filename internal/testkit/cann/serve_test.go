package cann

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestServe asks for a file under every fault.
func TestServe(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "a.run")
	write(t, file, strings.Repeat("0123456789", 1000), 0o644)
	for _, c := range []struct {
		fault Fault
		codes []int // of each request; 0 is an error
		size  int   // of the last
	}{
		{Good, []int{200}, 10000},
		{BusyTwice, []int{503, 503, 200}, 10000},
		{DropsOnce, []int{0, 200}, 10000},
		{AlwaysDrops, []int{0, 0}, 0},
		{ErrorPage, []int{200}, len(errorPage)},
		{ErrorStatus, []int{403}, len(errorPage)},
		{Redirects, []int{200}, 10000},
		{RedirectLoop, []int{0}, 0},
		{WrongContent, []int{200}, 10000},
		{Slow, []int{200}, 10000},
		{Stalls, []int{0}, 0},
	} {
		t.Run(string(c.fault), func(t *testing.T) {
			t.Parallel()
			s := Serve(t, map[string]Fault{"a.run": c.fault}, file)
			client := trusting(t, s)
			size := 0
			for i, want := range c.codes {
				code, body := get(client, s.URL+"/mirror/a.run", "")
				if code != want {
					t.Errorf("request %d: %d, want %d", i, code, want)
				}
				size = len(body)
			}
			if size != c.size {
				t.Errorf("%d bytes, want %d", size, c.size)
			}
		})
	}
	s := Serve(t, nil, file)
	if code, body := get(trusting(t, s), s.URL+"/a.run", "bytes=9990-"); code != http.StatusPartialContent || body != "0123456789" {
		t.Errorf("a range: %d, %q", code, body)
	}
	if _, err := http.Get(s.URL + "/a.run"); err == nil || !errors.As(err, new(*tls.CertificateVerificationError)) {
		t.Error("the certificate is trusted without the CA:", err)
	}
}

func trusting(t *testing.T, s *Server) *http.Client {
	t.Helper()
	pem, err := os.ReadFile(s.CA)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	return &http.Client{Timeout: time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}}
}

func get(client *http.Client, url, span string) (int, string) {
	req, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		return 0, ""
	}
	if span != "" {
		req.Header.Set("Range", span)
	}
	res, err := client.Do(req)
	if err != nil {
		return 0, ""
	}
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		return 0, ""
	}
	return res.StatusCode, string(b)
}
