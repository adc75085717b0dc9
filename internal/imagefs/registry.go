package imagefs

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/invar-ops/invar/internal/report"
)

// patience is how often and how long a registry is asked that gives a passing error.
var patience = remote.Backoff{Duration: 300 * time.Millisecond, Factor: 2, Steps: 3}

// answerWithin is how long a registry may take for a manifest.
const answerWithin = time.Minute

// fromRegistry takes the image that a registry has under the reference.
// Credentials come from where docker and podman keep them.
func (i *Image) fromRegistry(ctx context.Context, want wish) error {
	ref, err := name.ParseReference(i.Ref)
	if err != nil {
		return report.Usagef("image %q: %s", i.Ref, err).WithHint("for example registry.example/name:tag, or the path of an archive or an OCI layout")
	}
	i.Kind = "registry"
	options := func(ctx context.Context) []remote.Option {
		return []remote.Option{
			remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain), remote.WithRetryBackoff(patience),
		}
	}
	repo := ref.Context()
	get := func(ctx context.Context, ref name.Reference) (*remote.Descriptor, error) {
		asking, cancel := context.WithTimeout(ctx, answerWithin)
		defer cancel()
		d, err := remote.Get(ref, options(asking)...)
		if err != nil {
			return nil, unreachable(ctx, i.Ref, err)
		}
		return d, nil
	}
	c := content{
		manifest: func(ctx context.Context, h v1.Hash) ([]byte, error) {
			d, err := get(ctx, repo.Digest(h.String()))
			if err != nil {
				return nil, err
			}
			return d.Manifest, nil
		},
		blob: func(ctx context.Context, h v1.Hash) (io.ReadCloser, error) {
			l, err := remote.Layer(repo.Digest(h.String()), options(ctx)...)
			if err != nil {
				return nil, unreachable(ctx, i.Ref, err)
			}
			r, err := l.Compressed()
			if err != nil {
				return nil, unreachable(ctx, i.Ref, err)
			}
			return r, nil
		},
	}
	d, err := get(ctx, ref)
	if err != nil {
		return err
	}
	all := []candidate{}
	if d.MediaType.IsIndex() {
		m, err := v1.ParseIndexManifest(bytes.NewReader(d.Manifest))
		if err != nil {
			return damaged("%s: %w", i.Ref, err)
		}
		if all, err = i.candidates(ctx, c, m, "", 0); err != nil {
			return err
		}
	} else {
		p, err := i.platformOf(ctx, c, v1.Descriptor{Digest: d.Digest})
		if err != nil {
			return err
		}
		all = append(all, candidate{digest: d.Digest, platform: p})
	}
	got, err := choose(i.Ref, all, want, "")
	if err != nil {
		return err
	}
	return i.take(ctx, c, got.digest)
}

// unreachable says why a registry did not give what was asked for.
func unreachable(ctx context.Context, ref string, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if t, ok := errors.AsType[*transport.Error](err); ok {
		switch t.StatusCode {
		case http.StatusNotFound:
			return report.Problemf(report.Unmet, "the registry has no image %s", ref).WithWant(ref, err.Error()).
				WithHint("look at the name and the tag; an image on this machine is saved to a file first: docker save, buildah push IMAGE oci-archive:FILE")
		case http.StatusUnauthorized, http.StatusForbidden:
			return report.Problemf(report.Unmet, "the registry refuses %s", ref).WithWant("permission to pull", err.Error()).
				WithHint("log in: docker login, podman login")
		}
	}
	return report.Problemf(report.Unmet, "the registry of %s does not answer", ref).WithWant("a registry", err.Error()).
		WithHint("look at its name and at HTTPS_PROXY; an archive or an OCI layout needs no registry")
}
