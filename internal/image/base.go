package image

import (
	"context"
	"net"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/run"
)

// scratch is the empty base of Dockerfiles; no registry has it.
const scratch = "scratch"

// A base is the image that a build starts from, by content.
type base struct {
	From     string // what the builder is given
	Digest   string // "sha256:..." of the manifest, or of the configuration for a local image; "" of scratch
	Insecure bool
	Arch     string   // as in platforms; "" where nobody was asked
	Env      []string // of its configuration
}

// resolve turns the reference of a base image into one by digest: a tag may
// name something else tomorrow. The registry is asked; for a name that begins
// with "localhost/", the builder's own store is. What can be told from the
// configuration is refused before anything is built.
func resolve(ctx context.Context, req Request, b Builder, ref string) (base, error) {
	if ref == scratch {
		return base{From: scratch}, nil
	}
	parsed, err := name.ParseReference(ref)
	if err != nil {
		return base{}, report.Usagef("base image %q: %s", ref, err).WithHint("for example --base docker.io/library/debian:bookworm-slim")
	}
	insecure := loopback(parsed.Context().RegistryStr())
	if d, ok := parsed.(name.Digest); ok {
		return base{From: ref, Digest: d.DigestStr(), Insecure: insecure}, nil
	}
	found, ok := b.local(ctx, req.Runner, req.Env, ref)
	if !ok {
		if found, err = remoteBase(ctx, parsed, req.Platform); err != nil {
			return base{}, err
		}
	}
	found.Insecure = insecure
	return found, found.check(ref, req.Platform)
}

// remoteBase asks the registry.
func remoteBase(ctx context.Context, ref name.Reference, platform string) (base, error) {
	want, err := v1.ParsePlatform(platform)
	if err != nil {
		return base{}, err
	}
	asking, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	desc, err := remote.Get(ref, remote.WithContext(asking), remote.WithAuthFromKeychain(authn.DefaultKeychain), remote.WithPlatform(*want))
	if err != nil {
		return base{}, noBase(ctx, ref.String(), err)
	}
	found := base{From: ref.Context().Name() + "@" + desc.Digest.String(), Digest: desc.Digest.String()}
	img, err := desc.Image()
	if err != nil {
		return base{}, noBase(ctx, ref.String()+" for "+platform, err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		return base{}, noBase(ctx, ref.String(), err)
	}
	found.Arch, found.Env = config.Architecture, config.Config.Env
	return found, nil
}

func noBase(ctx context.Context, want string, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return report.Problemf(report.Unmet, "the base image cannot be found").
		WithWant(want, err.Error()).
		WithHint("log in to the registry, set HTTPS_PROXY, or name another base with --base")
}

// check refuses a base that no good image can come from.
func (b base) check(ref, platform string) error {
	if want := strings.TrimPrefix(platform, "linux/"); b.Arch != "" && b.Arch != want {
		return report.Problemf(report.Unmet, "the base image is for another platform").
			WithWant(platform, ref+" for linux/"+b.Arch).
			WithHint("name a base for %s with --base, or build for its platform with --platform", platform)
	}
	if err := checkConfig(b.Env); err != nil {
		err.Code = report.Unmet
		return err
	}
	return nil
}

// local is ref in the builder's store on this host. Only images whose name says
// "localhost/" are looked for: for others the registry decides.
func (b Builder) local(ctx context.Context, r run.Runner, env []string, ref string) (base, bool) {
	argv := map[string][]string{
		"buildah": {"buildah", "inspect", "--type", "image", "--format", "{{.FromImageID}} {{.OCIv1.Architecture}}{{range .OCIv1.Config.Env}}\n{{.}}{{end}}", ref},
		"podman":  {"podman", "image", "inspect", "--format", "{{.Id}} {{.Architecture}}{{range .Config.Env}}\n{{.}}{{end}}", ref},
		"docker":  {"docker", "image", "inspect", "--format", "{{.Id}} {{.Architecture}}{{range .Config.Env}}\n{{.}}{{end}}", ref},
	}[b.Name]
	if argv == nil || !strings.HasPrefix(ref, "localhost/") {
		return base{}, false
	}
	res, err := r.Run(ctx, run.Cmd{Argv: argv, Env: env, Timeout: time.Minute})
	lines := strings.Split(strings.TrimSpace(string(res.Stdout)), "\n")
	id, arch, _ := strings.Cut(lines[0], " ")
	if err != nil || id == "" {
		return base{}, false
	}
	return base{From: id, Digest: "sha256:" + strings.TrimPrefix(id, "sha256:"), Arch: arch, Env: lines[1:]}, true
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
