package verify

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/invar-ops/invar/internal/openai"
	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/verify/dialect"
	"github.com/invar-ops/invar/internal/verify/drive"
)

// A connection is a server and what it says of itself.
type connection struct {
	client  *openai.Client
	ranks   []*openai.Client
	engine  dialect.Engine
	model   string
	version string
	labels  []string // of its engines
	cache   string   // prefix caching, as the server says it
}

func (v *verification) client(base string) (*openai.Client, error) {
	u, err := url.Parse(base)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, report.Usagef("%q is no URL of a server", base).WithHint("--url http://127.0.0.1:8000")
	}
	c := openai.New(base, openai.Options{Key: v.Key, Timeout: v.Timeout, Connections: max(v.Concurrency, 64), Roots: v.Roots})
	if v.Transport != nil {
		c.HTTP = &http.Client{Transport: v.Transport}
	}
	return c, nil
}

// connect asks the server who it is. Nothing was sent to a model yet.
func (v *verification) connect(ctx context.Context, base string) (*connection, error) {
	c := &connection{}
	var err error
	if c.client, err = v.client(base); err != nil {
		return nil, err
	}
	for _, u := range v.RankURLs {
		r, err := v.client(u)
		if err != nil {
			return nil, err
		}
		c.ranks = append(c.ranks, r)
	}
	if err := c.choose(ctx, v.Model); err != nil {
		return nil, err
	}
	if c.version, err = c.client.Version(ctx); err != nil {
		return nil, reached(base, err)
	}
	m, ok, err := drive.Metrics(ctx, c.client)
	if err != nil {
		return nil, reached(base, err)
	}
	if c.engine, err = dialect.Recognise(m, c.version != ""); err != nil {
		return nil, err
	}
	for _, path := range c.engine.About.Paths {
		if c.version != "" {
			break
		}
		if c.version, err = c.client.Told(ctx, path, c.engine.About.Field); err != nil {
			return nil, reached(base, err)
		}
	}
	if !ok {
		return c, nil
	}
	// The counter of finished requests has a series for each engine once it
	// exists; before the first request only the gauges do.
	for _, word := range []string{dialect.Running, dialect.Finished} {
		if by, ok := m.Sum(c.engine.Label, c.engine.Metrics[word]...); ok && len(by) > len(c.labels) {
			c.labels = slices.Sorted(maps.Keys(by))
		}
	}
	c.cache = m.Labels(c.engine.Metrics[dialect.Config]...)["enable_prefix_caching"]
	return c, nil
}

// choose picks the model: the one that was named, or the only one.
func (c *connection) choose(ctx context.Context, want string) error {
	all, err := c.client.Models(ctx)
	if err != nil {
		return reached(c.client.Base, err)
	}
	var ids []string
	for _, m := range all {
		ids = append(ids, m.ID)
	}
	switch {
	case want != "" && !slices.Contains(ids, want):
		return report.Problemf(report.Failed, "the server has no model %q", want).WithWant(want, strings.Join(ids, ", "))
	case want != "":
		c.model = want
	case len(ids) == 0:
		return report.Problemf(report.Failed, "the server at %s offers no model", c.client.Base)
	default:
		c.model = ids[0] // the others are adapters, or names of the same
	}
	return nil
}

// reached explains why a server could not be asked.
func reached(base string, err error) error {
	p := report.Problemf(report.Failed, "server %s: %w", base, err)
	s, isStatus := errors.AsType[*openai.StatusError](err)
	switch {
	case isStatus && (s.Code == http.StatusUnauthorized || s.Code == http.StatusForbidden):
		return p.WithHint("set INVAR_API_KEY, or pass --api-key-file")
	case isStatus:
		return p.WithHint("is it an OpenAI-compatible server")
	case strings.Contains(err.Error(), "x509"):
		return p.WithHint("pass the server's certificate authority: --ca FILE")
	case openai.Broken(err):
		return p.WithHint("is it running: curl %s/health; or let invar start it: --launch \"vllm serve MODEL\"", base)
	}
	return p.WithHint("a longer --timeout, if the server is only slow")
}
