package vllmascend

import (
	"context"
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/invar-ops/invar/internal/fetch"
	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/run"
	"github.com/invar-ops/invar/internal/store"
)

// publicIndex is asked where neither flag nor environment names another.
const publicIndex = "https://pypi.org/simple/"

// A Source is one request for the tree of a released version.
type Source struct {
	Version string
	Index   string // simple index (PEP 503 or 691); "" is the one that pip and uv use
	Into    string // folder to make the tree in
	Fetch   fetch.Options
}

// A Fetched says what Get brought.
type Fetched struct {
	Tree   Tree   `json:"tree"`
	File   string `json:"file"`
	SHA256 string `json:"sha256"`
	Index  string `json:"index"`
	Cached bool   `json:"cached"` // the file was there
}

// Get fetches the source distribution of the version, compares it with the
// digest that the index gives, and unpacks it into a new folder.
func (s Source) Get(ctx context.Context, r run.Runner, env []string) (Fetched, error) {
	index := s.index(env)
	f := Fetched{Index: index}
	dir := filepath.Join(s.Into, fmt.Sprintf("vllm_ascend-%s", s.Version))
	if exists(dir) {
		return f, report.Problemf(report.Failed, "%s is there already", dir).
			WithHint("remove it, or unpack elsewhere: --into DIR")
	}
	link, sum, err := s.find(ctx, index)
	if err != nil {
		return f, err
	}
	got, err := fetch.Get(ctx, fetch.Item{Name: path.Base(link.Path), URLs: []string{link.String()}, Pins: []string{sum}}, s.Fetch)
	if err != nil {
		return f, err
	}
	f.File, f.SHA256, f.Cached = got.Name, got.SHA256, got.Cached
	if err := os.MkdirAll(s.Into, 0o755); err != nil {
		return f, store.Explain(err, s.Into)
	}
	if err := untar(ctx, got.Path, dir); err != nil {
		return f, err
	}
	f.Tree, err = Open(ctx, r, dir, env)
	return f, err
}

func (s Source) index(env []string) string {
	for _, v := range []string{s.Index, run.Getenv(env, "UV_DEFAULT_INDEX"), run.Getenv(env, "UV_INDEX_URL"), run.Getenv(env, "PIP_INDEX_URL")} {
		if v != "" {
			return strings.TrimSuffix(v, "/") + "/"
		}
	}
	return publicIndex
}

// find reads the page of the project and takes the one source distribution.
func (s Source) find(ctx context.Context, index string) (*url.URL, string, error) {
	page, err := url.Parse(index + Dist + "/")
	if err != nil {
		return nil, "", report.Usagef("--index %s is no address", index)
	}
	b, err := fetch.Page(ctx, page.String(), "application/vnd.pypi.simple.v1+json, text/html;q=0.5", s.Fetch)
	if err != nil {
		return nil, "", err
	}
	var seen []string
	for _, f := range files(b) {
		v, ok := strings.CutSuffix(f.Filename, ".tar.gz")
		if !ok {
			continue
		}
		_, v, _ = strings.Cut(v, "-")
		seen = append(seen, v)
		if !same(v, s.Version) {
			continue
		}
		u, err := page.Parse(f.URL)
		if err != nil || f.Hashes["sha256"] == "" {
			return nil, "", report.Problemf(report.Failed, "%s gives no SHA-256 of %s", index, f.Filename).
				WithHint("take another index: --index URL")
		}
		u.Fragment = ""
		return u, f.Hashes["sha256"], nil
	}
	return nil, "", report.Problemf(report.Unmet, "the index has no source distribution of vllm-ascend %s", s.Version).
		WithWant(s.Version, "versions "+strings.Join(seen, ", ")).WithHint("name one of them: invar source vllm-ascend VERSION")
}

// An indexFile is one file of a project, as PEP 691 has it.
type indexFile struct {
	Filename string            `json:"filename"`
	URL      string            `json:"url"`
	Hashes   map[string]string `json:"hashes"`
}

var anchorRE = regexp.MustCompile(`(?is)<a\s[^>]*href\s*=\s*["']([^"']+)["'][^>]*>(.*?)</a>`)

// files reads the page of a project: JSON, or HTML where the index is an old one.
func files(b []byte) []indexFile {
	var page struct {
		Files []indexFile `json:"files"`
	}
	if json.Unmarshal(b, &page) == nil {
		return page.Files
	}
	var out []indexFile
	for _, m := range anchorRE.FindAllSubmatch(b, -1) {
		href := html.UnescapeString(string(m[1]))
		at, fragment, _ := strings.Cut(href, "#")
		f := indexFile{Filename: strings.TrimSpace(html.UnescapeString(string(m[2]))), URL: at, Hashes: map[string]string{}}
		if algorithm, sum, ok := strings.Cut(fragment, "="); ok {
			f.Hashes[algorithm] = sum
		}
		out = append(out, f)
	}
	return out
}
