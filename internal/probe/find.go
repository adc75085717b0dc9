package probe

import (
	"context"
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/invar-ops/invar/internal/install"
	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/run"
)

// A search is what a walk through a root found of invar.
type search struct {
	prefixes []string // with a current generation
	hooks    []string // files in site-packages that name a prefix
	closed   []string // folders that this user may not read
}

// kernelDirs are filled by a running kernel; in an image they are empty.
var kernelDirs = []string{"/proc", "/sys", "/dev"}

var currentRE = regexp.MustCompile(`^(.*)/env/[0-9a-f]{12}/current$`)

// searchRoot looks at every name in the root; links are not followed.
func (p *prober) searchRoot(ctx context.Context) (search, error) {
	var s search
	err := filepath.WalkDir(p.Root.Dir(), func(at string, d fs.DirEntry, err error) error {
		name := "/" + strings.TrimPrefix(strings.TrimPrefix(at, p.Root.Dir()), "/")
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			s.closed = append(s.closed, name)
			return fs.SkipDir
		case d.IsDir() && slices.Contains(kernelDirs, name):
			return fs.SkipDir
		case d.Name() == install.HookName:
			s.hooks = append(s.hooks, name)
		case d.Type()&fs.ModeSymlink != 0:
			if m := currentRE.FindStringSubmatch(name); m != nil && !slices.Contains(s.prefixes, m[1]) {
				s.prefixes = append(s.prefixes, m[1])
			}
		}
		return nil
	})
	return s, err
}

// findPrefix is the prefix in the root that is meant: the one that INVAR_HOME of
// the image names, else the only one. It does not guess among several.
func (p *prober) findPrefix(ctx context.Context) (string, error) {
	home := path.Clean("/" + run.Getenv(p.Env, "INVAR_HOME"))
	if home != "/" {
		if prefix, err := install.OpenIn(p.Root, home); err == nil {
			if ids, err := installed(prefix); err == nil && len(ids) > 0 {
				return home, nil
			}
		}
	}
	s, err := p.searchRoot(ctx)
	switch {
	case err != nil:
		return "", err
	case len(s.prefixes) == 1:
		return s.prefixes[0], nil
	case len(s.prefixes) > 1:
		return "", report.Usagef("several prefixes hold operators: %s", strings.Join(s.prefixes, ", ")).
			WithHint("name one with --prefix DIR, as it is called inside the root")
	}
	if len(s.closed) > 0 { // they may lie there
		return "", report.Problemf(report.Inconclusive, "no operators of invar were found in %s, and not all of it may be read", p.whole()).
			WithWant("a receipt below /opt/invar/env, or in another prefix", s.traces()).WithHint("look as a user who may read it")
	}
	return "", report.Problemf(report.CheckFailed, "no operators of invar are installed in %s", p.whole()).
		WithWant("a receipt below /opt/invar/env, or in another prefix", s.traces()).
		WithHint("build them there, or copy the prefix and %s in site-packages into it: docs/images.md", install.HookName)
}

// whole names what is looked at.
func (p *prober) whole() string {
	if p.Image != nil {
		return "the image " + p.Image.Ref
	}
	return "this root"
}

// traces says what there is instead of an installation.
func (s search) traces() string {
	var out []string
	if len(s.hooks) > 0 {
		out = append(out, strings.Join(s.hooks, ", ")+" without the prefix that it names")
	}
	if len(s.closed) > 0 {
		out = append(out, "may not read "+strings.Join(s.closed[:min(3, len(s.closed))], ", ")+because(more(len(s.closed)-3)))
	}
	return firstNonEmpty(strings.Join(out, "; "), "none")
}

func more(n int) string {
	if n <= 0 {
		return ""
	}
	return "and " + count(n, "more folder")
}
