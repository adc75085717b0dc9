package fetch

import (
	"context"
	"errors"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/store"
)

// A place is where an item may be: a path or an address.
type place struct {
	path string
	url  *url.URL
}

func (p place) text() string {
	if p.path != "" {
		return p.path
	}
	return p.url.Redacted()
}

// places lists mirrors first, then where the item is published, and says of
// those that must not be asked why.
func (o Options) places(item Item) (out []place, refused []reason) {
	add := func(text string, mirror bool) {
		p, err := parse(text)
		if err == nil && mirror {
			p = p.join(item.Name)
		}
		if err == nil {
			err = o.allowed(item, p)
		}
		if err != nil {
			refused = append(refused, reason{text, err})
			return
		}
		out = append(out, p)
	}
	for _, m := range o.Mirrors {
		add(m, true)
	}
	for _, u := range item.URLs {
		add(u, false)
	}
	return out, refused
}

// parse reads an absolute or relative path, a file:// or an http(s):// address.
func parse(text string) (place, error) {
	if !strings.Contains(text, "://") {
		abs, err := filepath.Abs(text)
		return place{path: abs}, err
	}
	u, err := url.Parse(text)
	if err != nil {
		return place{}, report.Usagef("%s is no address", text)
	}
	switch u.Scheme {
	case "file":
		if (u.Host != "" && u.Host != "localhost") || u.Path == "" {
			return place{}, report.Usagef("%s names no file of this machine", text).WithHint("file:///path")
		}
		return place{path: filepath.Clean(u.Path)}, nil
	case "http", "https":
		if u.Host == "" {
			return place{}, report.Usagef("%s names no server", text)
		}
		return place{url: u}, nil
	}
	return place{}, report.Usagef("%s:// is no way to fetch a file", u.Scheme).WithWant("a path, file://, https:// or http://", u.Scheme)
}

// join names a file of a mirror. A mirror that is a file itself stays as it is.
func (p place) join(name string) place {
	if p.path != "" {
		if st, err := os.Stat(p.path); err == nil && !st.IsDir() && filepath.Base(p.path) == name {
			return p
		}
		return place{path: filepath.Join(p.path, name)}
	}
	return place{url: p.url.JoinPath(name)}
}

// allowed refuses what --offline forbids, and plain HTTP for content that
// nobody has pinned: whoever is on the wire could send anything.
func (o Options) allowed(item Item, p place) error {
	if p.url == nil {
		return nil
	}
	if o.Offline {
		return errors.New("not asked: --offline")
	}
	if p.url.Scheme == "http" && len(item.Pins) == 0 {
		return report.Problemf(report.Failed, "plain http for content without a known digest").
			WithWant("https, or a pinned digest", p.url.Scheme+"://"+p.url.Host).
			WithHint("use https, or say which content you expect: --accept-digest sha256:...")
	}
	return nil
}

// local copies a file of this machine into the cache.
func (o Options) local(ctx context.Context, item Item, path string) (File, error) {
	st, err := os.Stat(path)
	if err != nil {
		return File{}, err
	}
	if st.IsDir() {
		return File{}, report.Problemf(report.Failed, "%s is a folder", path).WithWant("a file", "a folder")
	}
	if item.Size > 0 && st.Size() != item.Size {
		return File{}, wrongSize(item, st.Size(), path)
	}
	in, err := os.Open(path)
	if err != nil {
		return File{}, err
	}
	defer in.Close()
	part, err := os.CreateTemp(filepath.Join(o.Cache, "partial"), "copy-")
	if err != nil {
		return File{}, store.Explain(err, "cache "+o.Cache)
	}
	defer func() { _ = os.Remove(part.Name()) }()
	defer part.Close()
	h := newHasher()
	defer h.close()
	first := true
	if _, err := h.copy(ctx, part, in, func(b []byte) error {
		if !first {
			return nil
		}
		first = false
		return pageError(path, "", b)
	}); err != nil && !errors.Is(err, io.EOF) {
		return File{}, store.Explain(err, "cache "+o.Cache)
	}
	return o.keep(item, part, h.sum(), st.Size(), path)
}

// keep checks the finished file against what was wanted and gives it its name in the cache.
func (o Options) keep(item Item, part *os.File, sum string, size int64, from string) (File, error) {
	if item.Size > 0 && size != item.Size {
		return File{}, wrongSize(item, size, from)
	}
	if len(item.Pins) > 0 && !slices.Contains(item.Pins, sum) {
		return File{}, wrongContent(item, sum, from)
	}
	if err := errors.Join(part.Chmod(0o644), part.Close()); err != nil {
		return File{}, store.Explain(err, "cache "+o.Cache)
	}
	if err := os.Rename(part.Name(), o.object(sum)); err != nil {
		return File{}, store.Explain(err, "cache "+o.Cache)
	}
	o.note(sum, from)
	return File{Path: o.object(sum), Name: item.Name, SHA256: sum, Size: size, From: from}, nil
}

// note remembers beside the cache where content came from. Best effort: without
// it a later message says "cache".
func (o Options) note(sum, from string) {
	file := filepath.Join(o.Cache, "from", sum)
	if os.MkdirAll(filepath.Dir(file), 0o755) == nil {
		_ = store.WriteFile(file, []byte(from+"\n"), 0o644)
	}
}

func (o Options) noted(sum string) string {
	b, err := os.ReadFile(filepath.Join(o.Cache, "from", sum))
	if text := strings.TrimSpace(string(b)); err == nil && text != "" {
		return text
	}
	return FromCache
}
