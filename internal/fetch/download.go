package fetch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/go-retryablehttp"
	"golang.org/x/sys/unix"

	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/store"
)

// A transfer is one file on its way, over as many connections as it takes.
// What has come stays in the cache when the process ends, and is gone on with.
type transfer struct {
	o      Options
	item   Item
	url    *url.URL
	client *retryablehttp.Client
	part   *os.File
	step   report.Step
	from   mark
	resent bool // it was begun anew once, since a joined file was not what it should be
}

// A mark says which content a partial file belongs to.
type mark struct {
	URL      string `json:"url"`
	ETag     string `json:"etag,omitempty"`
	Modified string `json:"modified,omitempty"`
}

// bodies is how often a body may break off before the address is given up: a
// server that sends some bytes each time would keep us for ever.
const bodies = 40

func (o Options) download(ctx context.Context, item Item, u *url.URL) (File, error) {
	c, err := o.client()
	if err != nil {
		return File{}, err
	}
	t := &transfer{o: o, item: item, url: u, client: c}
	if err := t.open(ctx); err != nil {
		return File{}, err
	}
	defer t.part.Close() // and with it the lock
	start := time.Now()
	f, err := t.run(ctx)
	if t.step != nil {
		if err != nil {
			t.step.Fail(err)
		} else {
			t.step.Done(fmt.Sprintf("%s from %s, %s/s", megabytes(f.Size), u.Host, megabytes(rate(f.Size, time.Since(start)))))
		}
	}
	return f, err
}

func rate(n int64, d time.Duration) int64 {
	if d <= 0 {
		return n
	}
	return int64(float64(n) / d.Seconds())
}

func megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }

// open takes the partial file for this process. Its name is that of the
// content where it is pinned, so that one mirror goes on where another stopped.
func (t *transfer) open(ctx context.Context) error {
	sum := sha256.Sum256([]byte(t.url.String()))
	key := hex.EncodeToString(sum[:])
	if len(t.item.Pins) == 1 {
		key = t.item.Pins[0]
	}
	path := filepath.Join(t.o.Cache, "partial", key[:32])
	for told := false; ; told = true {
		f, held, err := try(path)
		if err != nil {
			return store.Explain(err, "cache "+t.o.Cache)
		}
		if held {
			t.part = f
			break
		}
		if !told {
			t.o.Progress.Note(fmt.Sprintf("%s: waiting for another process that fetches %s", t.o.Stage, t.item.Name))
		}
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
	if b, err := os.ReadFile(path + ".json"); err != nil || json.Unmarshal(b, &t.from) != nil {
		t.from = mark{}
	}
	return nil
}

// try opens and locks the file at path. It may have been renamed or removed
// by the one that held the lock; then it is not ours to write to.
func try(path string) (*os.File, bool, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, false, err
	}
	var now, mine unix.Stat_t
	if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil &&
		unix.Fstat(int(f.Fd()), &mine) == nil && unix.Stat(path, &now) == nil && now.Ino == mine.Ino {
		return f, true, nil
	}
	return nil, false, f.Close()
}

func (t *transfer) run(ctx context.Context) (File, error) {
	// The one that had the lock before us may have finished.
	if f, ok, err := cached(ctx, t.item, t.o); ok || err != nil {
		return f, err
	}
	h, have, err := t.resume(ctx)
	if err != nil {
		return File{}, err
	}
	defer func() { h.close() }()
	barren := 0
	for try := 0; ; try++ {
		n, next, err := t.once(ctx, h, have)
		if next != nil {
			h.close()
			h = next
		}
		have = n
		if err == nil {
			break
		}
		if ctx.Err() != nil {
			return File{}, context.Cause(ctx)
		}
		if _, cut := errors.AsType[*cutError](err); !cut {
			return File{}, err
		}
		if barren++; n > 0 && errorAdvanced(err) {
			barren = 0
		}
		if barren >= attempts || try >= bodies {
			return File{}, report.Problemf(report.Failed, "%s broke off at %d bytes, %d times: %w", t.url.Host, have, try+1, err).
				WithHint("run it again: it goes on where it stopped; or name a mirror: --mirror")
		}
		if err := pause(ctx, min(t.o.firstWait()<<barren, maxWait)); err != nil {
			return File{}, err
		}
	}
	return t.finish(ctx, h, have)
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

// finish checks and keeps the file. One that was joined from several answers
// and is wrong is fetched once more as a whole.
func (t *transfer) finish(ctx context.Context, h *hasher, size int64) (File, error) {
	joined := t.from.ETag == joinedMark
	f, err := t.o.keep(t.item, t.part, h.sum(), size, t.url.Redacted())
	path := t.part.Name()
	_ = os.Remove(path + ".json")
	if err == nil {
		return f, nil
	}
	if terr := t.part.Truncate(0); terr != nil {
		return f, errors.Join(err, terr)
	}
	if !joined || t.resent {
		_ = os.Remove(path)
		return f, err
	}
	t.resent, t.from = true, mark{}
	return t.run(ctx)
}

// joinedMark stands for the tag of a file that came from more than one answer
// without a tag that says they were of one file.
const joinedMark = "joined"

// resume digests what an earlier run left and says how much that is.
func (t *transfer) resume(ctx context.Context) (*hasher, int64, error) {
	h := newHasher()
	usable := len(t.item.Pins) == 1 || (t.from.URL == t.url.String() && t.from.validator() != "")
	if !usable {
		return h, 0, t.part.Truncate(0)
	}
	if _, err := t.part.Seek(0, io.SeekStart); err != nil {
		return h, 0, err
	}
	n, err := h.copy(ctx, io.Discard, t.part, func([]byte) error { return nil })
	if err != nil {
		return h, 0, err
	}
	if t.item.Size > 0 && n > t.item.Size {
		h.close()
		return newHasher(), 0, t.part.Truncate(0)
	}
	if n > 0 {
		t.o.Progress.Note(fmt.Sprintf("%s: going on with %s at %s", t.o.Stage, t.item.Name, megabytes(n)))
	}
	return h, n, nil
}

func (m mark) validator() string {
	if m.ETag != "" && !strings.HasPrefix(m.ETag, "W/") && m.ETag != joinedMark {
		return m.ETag
	}
	return m.Modified
}

// request asks for the rest of the file.
func (t *transfer) request(ctx context.Context, have int64) (*retryablehttp.Request, error) {
	req, err := retryablehttp.NewRequestWithContext(ctx, http.MethodGet, t.url.String(), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", "invar")
	req.Header.Set("Accept-Encoding", "identity")
	if have > 0 {
		req.Header.Set("Range", "bytes="+strconv.FormatInt(have, 10)+"-")
		if v := t.from.validator(); v != "" && t.from.URL == t.url.String() {
			req.Header.Set("If-Range", v)
		}
	}
	return req, nil
}
