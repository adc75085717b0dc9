// Package fetch brings files from where they are published, or from a mirror,
// into one cache by the SHA-256 of their content. It believes no name and no
// server: TLS is verified, sizes and digests are checked while bytes stream
// by, and what is no download at all (an error page, a cut file) is called
// what it is. What a file means, and whether its digest may be trusted, is the
// caller's business.
package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/run"
	"github.com/invar-ops/invar/internal/store"
)

// An Item is one file that is wanted.
type Item struct {
	Name string   // file name; mirrors are asked for it
	URLs []string // where it is published, in order of preference; paths and file:// too
	Pins []string // SHA-256 in hex of contents that will do, best first; empty takes any
	Size int64    // bytes; 0 when not known, or when several contents will do
}

// Options say how files are fetched.
type Options struct {
	Cache    string   // folder; see CacheDir
	Mirrors  []string // asked before Item.URLs: folders, file:// and http(s):// addresses
	Offline  bool     // cache and local folders only
	Env      []string // proxies are read from it
	CAFiles  []string // PEM files that are trusted beside the system's
	Stage    string   // of the progress lines
	Progress report.Progress

	wait  time.Duration // first pause between attempts; tests shorten it
	stall time.Duration // a silence after which a connection counts as dead
}

// A File is a fetched file. Path lies in the cache and must not be changed.
type File struct {
	Path   string `json:"path"`
	Name   string `json:"name"`
	SHA256 string `json:"sha256"`
	Size   int64  `json:"size"`
	From   string `json:"from"`   // address or path that the content came from, now or earlier; FromCache when nobody noted it
	Cached bool   `json:"cached"` // nothing was fetched
}

// FromCache stands for where content came from that lies in the cache without
// a note of it.
const FromCache = "cache"

// CacheDir is the cache of the user whose environment env is: INVAR_CACHE,
// else the XDG cache folder, else a folder of the prefix where there is no home.
func CacheDir(env []string, prefix string) string {
	if d := run.Getenv(env, "INVAR_CACHE"); filepath.IsAbs(d) {
		return filepath.Join(d, "downloads")
	}
	if d := run.Getenv(env, "XDG_CACHE_HOME"); filepath.IsAbs(d) {
		return filepath.Join(d, "invar", "downloads")
	}
	if d := run.Getenv(env, "HOME"); filepath.IsAbs(d) {
		return filepath.Join(d, ".cache", "invar", "downloads")
	}
	return filepath.Join(prefix, "cache", "downloads")
}

var hexRE = regexp.MustCompile(`^[0-9a-f]{64}$`)

// Get brings item into the cache and returns it there, verified. The error
// says for every place that was asked why it did not serve.
func Get(ctx context.Context, item Item, o Options) (File, error) {
	for _, pin := range item.Pins {
		if !hexRE.MatchString(pin) {
			return File{}, report.Usagef("%q is no SHA-256", pin).WithWant("64 hex digits in lower case", "")
		}
	}
	if item.Name == "" || item.Name != filepath.Base(item.Name) {
		return File{}, report.Usagef("%q is no file name", item.Name)
	}
	if o.Progress == nil {
		o.Progress = report.Discard
	}
	if f, ok, err := cached(ctx, item, o); ok || err != nil {
		return f, err
	}
	for _, d := range []string{"sha256", "partial"} {
		if err := os.MkdirAll(filepath.Join(o.Cache, d), 0o755); err != nil {
			return File{}, store.Explain(err, "cache "+o.Cache)
		}
	}
	return o.ask(ctx, item)
}

// cached finds item in the cache. An object that is not what its name says is removed.
func cached(ctx context.Context, item Item, o Options) (File, bool, error) {
	for _, pin := range item.Pins {
		path := o.object(pin)
		sum, size, err := store.Digest(ctx, path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return File{}, false, store.Explain(err, "cache "+o.Cache)
		case sum == pin && !fits(item.Name, path):
			continue // one of several accepted digests, and that of another file
		case sum == pin:
			return File{Path: path, Name: item.Name, SHA256: sum, Size: size, From: o.noted(sum), Cached: true}, true, nil
		}
		o.Progress.Note(fmt.Sprintf("%s in the cache is damaged; fetching it again", item.Name))
		if err := os.Remove(path); err != nil {
			return File{}, false, store.Explain(err, "cache "+o.Cache)
		}
	}
	return File{}, false, nil
}

// fits reports whether the content of path is of the kind that name promises.
// A user accepts digests without saying of which file each is.
func fits(name, path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }()
	head := make([]byte, 2)
	n, _ := io.ReadFull(f, head)
	return n == 2 && (string(head) == "PK") == (filepath.Ext(name) == ".zip")
}

func (o Options) object(sum string) string { return filepath.Join(o.Cache, "sha256", sum) }

// ask tries one place after the other.
func (o Options) ask(ctx context.Context, item Item) (File, error) {
	places, refused := o.places(item)
	for _, p := range places {
		f, err := o.from(ctx, item, p)
		if err == nil {
			return f, nil
		}
		if ctx.Err() != nil {
			return File{}, context.Cause(ctx)
		}
		if p, ok := errors.AsType[*report.Problem](err); ok && p.Code == report.Unmet {
			return File{}, err // no place to write to: the next address changes nothing
		}
		refused = append(refused, reason{p.text(), err})
	}
	return File{}, missing(item, o, refused)
}

func (o Options) from(ctx context.Context, item Item, p place) (File, error) {
	if p.path != "" {
		return o.local(ctx, item, p.path)
	}
	return o.download(ctx, item, p.url)
}

// A reason is one place and why it did not serve.
type reason struct {
	place string
	err   error
}

func missing(item Item, o Options, refused []reason) error {
	code := report.Failed
	if o.Offline {
		code = report.Unmet
	}
	if len(refused) == 1 {
		if p, ok := errors.AsType[*report.Problem](refused[0].err); ok {
			return p
		}
	}
	p := report.Problemf(code, "%s could not be fetched", item.Name)
	var got []string
	var errs []error
	for _, r := range refused {
		text := r.err.Error()
		if rp, ok := errors.AsType[*report.Problem](r.err); ok {
			if rp.Got != "" {
				text += " (" + rp.Got + ")"
			}
			if p.Hint == "" {
				p.Hint = rp.Hint
			}
		}
		got, errs = append(got, r.place+": "+text), append(errs, r.err)
	}
	if len(errs) > 0 {
		p.Err = fmt.Errorf("%s could not be fetched: %w", item.Name, errs[0])
	}
	p.Want, p.Got = "one place that has it", strings.Join(got, "; ")
	switch {
	case o.Offline:
		p.Hint = "copy " + item.Name + " into a folder and pass --mirror FOLDER, or run once without --offline"
	case p.Hint == "":
		p.Hint = "name another place with --mirror (a folder or an address)"
	}
	if len(refused) == 0 {
		p.Got = "no address is known, no mirror was given and the cache has it not"
	}
	return p
}
