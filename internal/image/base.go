package image

import (
	"context"
	"net"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/run"
)

// A base is the image that a build starts from, by content.
type base struct {
	From     string // what the builder is given
	Digest   string // "sha256:..." of the manifest, or of the configuration for a local image
	Insecure bool
}

// resolve turns the reference of a base image into one by digest: a tag may
// name something else tomorrow. The registry is asked; where it does not know
// the image, the builder's own store is.
func resolve(ctx context.Context, r run.Runner, env []string, b Builder, ref string) (base, error) {
	parsed, err := name.ParseReference(ref)
	if err != nil {
		return base{}, report.Usagef("base image %q: %s", ref, err).WithHint("for example --base docker.io/library/debian:bookworm-slim")
	}
	insecure := loopback(parsed.Context().RegistryStr())
	if d, ok := parsed.(name.Digest); ok {
		return base{From: ref, Digest: d.DigestStr(), Insecure: insecure}, nil
	}
	if local, ok := b.local(ctx, r, env, ref); ok {
		return base{From: local, Digest: "sha256:" + strings.TrimPrefix(local, "sha256:")}, nil
	}
	asking, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	desc, err := remote.Head(parsed, remote.WithContext(asking), remote.WithAuthFromKeychain(authn.DefaultKeychain))
	if err != nil {
		if ctx.Err() != nil {
			return base{}, context.Cause(ctx)
		}
		return base{}, report.Problemf(report.Unmet, "the base image cannot be found").
			WithWant(ref, err.Error()).
			WithHint("log in to the registry, set HTTPS_PROXY, or name another base with --base")
	}
	return base{From: parsed.Context().Name() + "@" + desc.Digest.String(), Digest: desc.Digest.String(), Insecure: insecure}, nil
}

// local is the ID of ref in the builder's store on this host. Only images whose
// name says "localhost/" are looked for: for others the registry decides.
func (b Builder) local(ctx context.Context, r run.Runner, env []string, ref string) (string, bool) {
	argv := map[string][]string{
		"buildah": {"buildah", "inspect", "--type", "image", "--format", "{{.FromImageID}}", ref},
		"podman":  {"podman", "image", "inspect", "--format", "{{.Id}}", ref},
		"docker":  {"docker", "image", "inspect", "--format", "{{.Id}}", ref},
	}[b.Name]
	if argv == nil || !strings.HasPrefix(ref, "localhost/") {
		return "", false
	}
	res, err := r.Run(ctx, run.Cmd{Argv: argv, Env: env, Timeout: time.Minute})
	id := strings.TrimSpace(string(res.Stdout))
	return id, err == nil && id != ""
}

// loopback reports whether a registry is on this machine, where plain HTTP is
// what registries speak.
func loopback(registry string) bool {
	host, _, err := net.SplitHostPort(registry)
	if err != nil {
		host = registry
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
