package fetch

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"syscall"
	"time"

	"github.com/hashicorp/go-retryablehttp"
	"golang.org/x/net/http/httpproxy"

	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/run"
)

// Attempts of one request, and pauses between them. A server that asks for a
// longer pause (Retry-After) gets it up to a minute.
const (
	attempts = 5
	maxWait  = 30 * time.Second
	maxAsked = time.Minute
	silence  = 30 * time.Second
)

// client verifies TLS always: there is no option to switch that off. Content
// is never decoded, so that sizes and digests are those of the file.
func (o Options) client() (*retryablehttp.Client, error) {
	roots, err := o.roots()
	if err != nil {
		return nil, err
	}
	proxy := proxies(o.Env)
	c := retryablehttp.NewClient()
	c.HTTPClient = &http.Client{
		Transport: &http.Transport{
			Proxy:                 func(r *http.Request) (*url.URL, error) { return proxy(r.URL) },
			TLSClientConfig:       &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots},
			TLSHandshakeTimeout:   20 * time.Second,
			ResponseHeaderTimeout: o.stallAfter(),
			DisableCompression:    true,
			ForceAttemptHTTP2:     true,
		},
		CheckRedirect: noDowngrade,
	}
	c.Logger = nil
	c.RetryMax = attempts - 1
	c.RetryWaitMin, c.RetryWaitMax = o.firstWait(), maxWait
	c.CheckRetry = retries()
	c.ErrorHandler = retryablehttp.PassthroughErrorHandler
	c.Backoff = func(low, high time.Duration, n int, resp *http.Response) time.Duration {
		w := min(retryablehttp.DefaultBackoff(low, high, n, resp), maxAsked)
		o.Progress.Note(fmt.Sprintf("%s: %s; again in %s", o.Stage, answer(resp), w.Round(100*time.Millisecond)))
		return w
	}
	return c, nil
}

// retries is the library's policy, but for a server that is not there at all:
// it is asked once more, since the next place is better than a long wait.
func retries() retryablehttp.CheckRetry {
	absent := 0
	return func(ctx context.Context, resp *http.Response, err error) (bool, error) {
		_, dns := errors.AsType[*net.DNSError](err)
		if dns || errors.Is(err, syscall.ECONNREFUSED) {
			if absent++; absent > 1 {
				return false, err
			}
		}
		return retryablehttp.DefaultRetryPolicy(ctx, resp, err)
	}
}

func answer(resp *http.Response) string {
	if resp == nil {
		return "no answer"
	}
	return resp.Request.URL.Host + " answered " + resp.Status
}

func (o Options) firstWait() time.Duration {
	if o.wait > 0 {
		return o.wait
	}
	return time.Second
}

func (o Options) stallAfter() time.Duration {
	if o.stall > 0 {
		return o.stall
	}
	return silence
}

// roots are the system's certificates (SSL_CERT_FILE and SSL_CERT_DIR count)
// and those that the user adds; nil leaves the system's alone.
func (o Options) roots() (*x509.CertPool, error) {
	if len(o.CAFiles) == 0 {
		return nil, nil
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	for _, f := range o.CAFiles {
		pem, err := os.ReadFile(f)
		if err != nil {
			return nil, report.Usagef("CA file: %w", err)
		}
		if !pool.AppendCertsFromPEM(pem) {
			return nil, report.Usagef("CA file %s holds no certificate", f).WithWant("certificates in PEM form", "none")
		}
	}
	return pool, nil
}

// proxies reads the usual variables from env, lower case first as curl does.
func proxies(env []string) func(*url.URL) (*url.URL, error) {
	get := func(name, upper string) string {
		if v := run.Getenv(env, name); v != "" {
			return v
		}
		return run.Getenv(env, upper)
	}
	all := get("all_proxy", "ALL_PROXY")
	c := httpproxy.Config{
		HTTPProxy: get("http_proxy", "HTTP_PROXY"), HTTPSProxy: get("https_proxy", "HTTPS_PROXY"), NoProxy: get("no_proxy", "NO_PROXY"),
	}
	if c.HTTPProxy == "" {
		c.HTTPProxy = all
	}
	if c.HTTPSProxy == "" {
		c.HTTPSProxy = all
	}
	return c.ProxyFunc()
}

// noDowngrade lets redirects go on over TLS only, once it was TLS.
func noDowngrade(req *http.Request, via []*http.Request) error {
	if len(via) >= 10 {
		return errors.New("stopped after 10 redirects")
	}
	if via[0].URL.Scheme == "https" && req.URL.Scheme != "https" {
		return fmt.Errorf("redirected from https to %s://%s", req.URL.Scheme, req.URL.Host)
	}
	return nil
}

// explain says what a request that got no answer failed on.
func explain(u *url.URL, err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	p := report.Problemf(report.Failed, "%s: %w", u.Host, innermost(err))
	unknown, isUnknown := errors.AsType[x509.UnknownAuthorityError](err)
	_, isHost := errors.AsType[x509.HostnameError](err)
	_, isCert := errors.AsType[x509.CertificateInvalidError](err)
	switch {
	case isUnknown:
		name := "an unknown authority"
		if unknown.Cert != nil {
			name = unknown.Cert.Issuer.String()
		}
		p.Want, p.Got = "a certificate of a trusted authority", "one of "+name
		p.Hint = "if your network has its own authority: --ca-file FILE.pem (or SSL_CERT_FILE); TLS checks cannot be switched off"
	case isHost || isCert:
		p.Want, p.Got = "a valid certificate for "+u.Hostname(), innermost(err).Error()
		p.Hint = "check the address and the clock of this machine; TLS checks cannot be switched off"
	default:
		p.Hint = "check the network and the proxy (https_proxy), or name a mirror: --mirror"
	}
	return p
}

// innermost drops the layers that only repeat method and address.
func innermost(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}
