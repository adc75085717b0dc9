package fetch

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/hashicorp/go-retryablehttp"

	"github.com/invar-ops/invar/internal/report"
)

// maxPage bounds a Page; the largest projects of the public index have 20 MB.
const maxPage = 64 << 20

// Page reads a document such as the list of an index. Its content is nobody's
// promise, so it comes over verified TLS or from this machine only.
func Page(ctx context.Context, address, accept string, o Options) ([]byte, error) {
	if o.Progress == nil {
		o.Progress = report.Discard
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return nil, report.Usagef("%s is no address", address)
	}
	if o.Offline {
		return nil, report.Problemf(report.Unmet, "%s is not asked: --offline", u.Host).WithHint("run it without --offline")
	}
	if u.Scheme != "https" && u.Hostname() != "localhost" && u.Hostname() != "127.0.0.1" {
		return nil, report.Problemf(report.Failed, "%s is not asked over plain http", u.Host).WithHint("use an index with https")
	}
	c, err := o.client()
	if err != nil {
		return nil, err
	}
	req, err := retryablehttp.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", "invar")
	req.Header.Set("Accept", accept)
	resp, err := c.Do(req)
	if err != nil && (resp == nil || resp.StatusCode < 400) {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, explain(u, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, (&transfer{url: u}).status(resp)
	}
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxPage+1))
	if err == nil && len(b) > maxPage {
		err = fmt.Errorf("more than %d bytes", maxPage)
	}
	if err != nil {
		return nil, report.Problemf(report.Failed, "%s: %w", u.Redacted(), err)
	}
	return b, nil
}
