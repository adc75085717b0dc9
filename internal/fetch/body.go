package fetch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"time"

	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/store"
)

// A cutError is a body that broke off; asking again may bring the rest.
type cutError struct {
	err      error
	advanced bool // it brought bytes
}

func (e *cutError) Error() string { return e.err.Error() }
func (e *cutError) Unwrap() error { return e.err }

func errorAdvanced(err error) bool {
	e, ok := errors.AsType[*cutError](err)
	return ok && e.advanced
}

// once makes one request and appends what it brings. It returns how many bytes
// are there now and, when the file had to be begun anew, the hasher of the new one.
func (t *transfer) once(ctx context.Context, h *hasher, have int64) (int64, *hasher, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	req, err := t.request(ctx, have)
	if err != nil {
		return have, nil, err
	}
	resp, err := t.client.Do(req)
	if err != nil && (resp == nil || resp.StatusCode < 400) {
		return have, nil, explain(t.url, err) // a refused redirect comes with an answer, too
	}
	defer resp.Body.Close()
	start, total, err := t.accept(resp, have)
	if errors.Is(err, errPastEnd) && have > 0 {
		return 0, newHasher(), errors.Join(&cutError{err, false}, t.part.Truncate(0))
	}
	if err != nil {
		return have, nil, err
	}
	var next *hasher
	if start != have {
		next, have = newHasher(), 0
		h = next
		if err := t.part.Truncate(0); err != nil {
			return 0, next, err
		}
	}
	if _, err := t.part.Seek(have, io.SeekStart); err != nil {
		return have, next, err
	}
	t.remember(resp, have)
	t.show(total, have)
	n, err := t.body(ctx, cancel, resp, h, have)
	have += n
	switch {
	case err == nil && total > 0 && have < total:
		err = &cutError{io.ErrUnexpectedEOF, n > 0}
	case err == nil && t.item.Size > 0 && have < t.item.Size:
		err = &cutError{io.ErrUnexpectedEOF, n > 0}
	}
	return have, next, err
}

// body copies the answer. A silence ends the connection, since no time-out
// for the whole fits both 3 MB and 300 MB.
func (t *transfer) body(ctx context.Context, cancel context.CancelCauseFunc, resp *http.Response, h *hasher, have int64) (int64, error) {
	limit := t.o.stallAfter()
	dead := time.AfterFunc(limit, func() { cancel(fmt.Errorf("nothing came for %s", limit)) })
	defer dead.Stop()
	at := have
	n, err := h.copy(ctx, t.part, resp.Body, func(b []byte) error {
		dead.Reset(limit)
		if at == 0 {
			if err := pageError(t.url.Redacted(), resp.Header.Get("Content-Type"), b); err != nil {
				return err
			}
		}
		at += int64(len(b))
		if t.item.Size > 0 && at > t.item.Size {
			return wrongSize(t.item, at, t.url.Redacted())
		}
		t.step.Add(int64(len(b)))
		return nil
	})
	_, told := errors.AsType[*report.Problem](err)
	_, local := errors.AsType[*os.PathError](err)
	switch {
	case err == nil || told:
		return n, err
	case local:
		return n, store.Explain(err, "cache "+t.o.Cache)
	case ctx.Err() != nil:
		return n, &cutError{context.Cause(ctx), n > 0}
	}
	return n, &cutError{err, n > 0}
}

// errPastEnd: what is there is not the beginning of the server's file.
var errPastEnd = errors.New("the server has no bytes from there on")

var rangeRE = regexp.MustCompile(`^bytes (\d+)-(\d+)/(\d+|\*)$`)

// accept judges the head of an answer: where its body starts, and how large
// the whole file is (0 when the server does not say).
func (t *transfer) accept(resp *http.Response, have int64) (start, total int64, err error) {
	switch resp.StatusCode {
	case http.StatusOK:
		total = max(resp.ContentLength, 0)
	case http.StatusPartialContent:
		m := rangeRE.FindStringSubmatch(resp.Header.Get("Content-Range"))
		if m == nil {
			return 0, 0, report.Problemf(report.Failed, "%s answered a part without saying which", t.url.Host)
		}
		if start, _ = strconv.ParseInt(m[1], 10, 64); start != have {
			return 0, 0, report.Problemf(report.Failed, "%s answered another part of the file", t.url.Host).
				WithWant(fmt.Sprintf("bytes from %d on", have), resp.Header.Get("Content-Range"))
		}
		total, _ = strconv.ParseInt(m[3], 10, 64)
	case http.StatusRequestedRangeNotSatisfiable:
		return 0, 0, errPastEnd
	default:
		return 0, 0, t.status(resp)
	}
	if t.item.Size > 0 && total > 0 && total != t.item.Size {
		return 0, 0, t.otherSize(resp, total)
	}
	return start, total, nil
}

// otherSize looks at the beginning of an answer of the wrong size: mostly it
// is an error page, and saying so helps more than two numbers.
func (t *transfer) otherSize(resp *http.Response, total int64) error {
	head := make([]byte, 2048)
	n, _ := io.ReadFull(resp.Body, head)
	if err := pageError(t.url.Redacted(), resp.Header.Get("Content-Type"), head[:n]); err != nil {
		return err
	}
	return wrongSize(t.item, total, t.url.Redacted())
}

func (t *transfer) status(resp *http.Response) error {
	p := report.Problemf(report.Failed, "%s answered %s", t.url.Redacted(), resp.Status)
	switch resp.StatusCode {
	case http.StatusNotFound, http.StatusGone:
		p.Hint = "the address is wrong or the file was taken away; name another place: --mirror"
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired:
		p.Hint = "a login is needed, or the proxy refuses; name another place: --mirror"
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		p.Hint = fmt.Sprintf("it was asked %d times; try later, or name a mirror: --mirror", attempts)
	}
	return p
}

// remember notes what the partial file is the beginning of.
func (t *transfer) remember(resp *http.Response, have int64) {
	m := mark{URL: t.url.String(), ETag: resp.Header.Get("ETag"), Modified: resp.Header.Get("Last-Modified")}
	if have > 0 && (m.validator() == "" || m.validator() != t.from.validator() || m.URL != t.from.URL) {
		m.ETag = joinedMark // only the digest can tell whether the parts belong together
	}
	t.from = m
	if b, err := json.Marshal(m); err == nil {
		_ = os.WriteFile(t.part.Name()+".json", b, 0o644) // without it, the next run begins anew
	}
}

func (t *transfer) show(total, have int64) {
	if t.step != nil {
		return
	}
	if total == 0 {
		total = -1
	}
	t.step = t.o.Progress.Start(t.o.Stage, t.item.Name, total)
	t.step.Add(have)
}
