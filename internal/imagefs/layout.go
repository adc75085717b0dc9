package imagefs

import (
	"bytes"
	"context"
	"io"
	"path"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/invar-ops/invar/internal/report"
)

// A content gives blobs by digest: of a layout or of a registry.
type content struct {
	manifest func(context.Context, v1.Hash) ([]byte, error)
	blob     func(context.Context, v1.Hash) (io.ReadCloser, error)
}

func (i *Image) fromLayout(ctx context.Context, a *archive, want wish, tag string) error {
	name := func(h v1.Hash) string { return path.Join("blobs", h.Algorithm, h.Hex) }
	c := content{
		manifest: func(_ context.Context, h v1.Hash) ([]byte, error) { return a.read(name(h)) },
		blob: func(_ context.Context, h v1.Hash) (io.ReadCloser, error) {
			r, _, err := a.open(name(h))
			return r, err
		},
	}
	b, err := a.read("index.json")
	if err != nil {
		return err
	}
	index, err := v1.ParseIndexManifest(bytes.NewReader(b))
	if err != nil {
		return notImage(i.Ref, "an index.json that is none: "+err.Error())
	}
	all, err := i.candidates(ctx, c, index, "", 0)
	if err != nil {
		return err
	}
	got, err := choose(i.Ref, all, want, tag)
	if err != nil {
		return err
	}
	return i.take(ctx, c, got.digest)
}

// maxIndexes bounds how deep indexes may hold indexes.
const maxIndexes = 8

// candidates lists the images in an index. Attestations that BuildKit puts
// beside them are none.
func (i *Image) candidates(ctx context.Context, c content, index *v1.IndexManifest, tag string, depth int) ([]candidate, error) {
	if depth > maxIndexes {
		return nil, damaged("%s: an index in an index, %d times", i.Ref, depth)
	}
	var out []candidate
	for _, d := range index.Manifests {
		tag := firstOf(d.Annotations["io.containerd.image.name"], d.Annotations["org.opencontainers.image.ref.name"], tag)
		switch {
		case d.Annotations["vnd.docker.reference.type"] != "" || d.Platform != nil && d.Platform.Architecture == "unknown":
		case d.MediaType.IsIndex():
			b, err := i.document(ctx, c.manifest, d.Digest)
			if err != nil {
				return nil, err
			}
			inner, err := v1.ParseIndexManifest(bytes.NewReader(b))
			if err != nil {
				return nil, damaged("%s: index %s: %w", i.Ref, d.Digest, err)
			}
			more, err := i.candidates(ctx, c, inner, tag, depth+1)
			if err != nil {
				return nil, err
			}
			out = append(out, more...)
		case d.MediaType.IsImage() || d.MediaType == "":
			p, err := i.platformOf(ctx, c, d)
			if err != nil {
				return nil, err
			}
			out = append(out, candidate{digest: d.Digest, platform: p, tag: tag})
		}
	}
	return out, nil
}

// platformOf is what the index says of an image, else what the image says.
func (i *Image) platformOf(ctx context.Context, c content, d v1.Descriptor) (v1.Platform, error) {
	if d.Platform != nil && d.Platform.Architecture != "" {
		return *d.Platform, nil
	}
	m, config, err := i.documents(ctx, c, d.Digest)
	if err != nil {
		return v1.Platform{}, err
	}
	f, err := v1.ParseConfigFile(bytes.NewReader(config))
	if err != nil || f.Platform() == nil {
		return v1.Platform{}, notImage(i.Ref, artifact(m))
	}
	return *f.Platform(), nil
}

// artifact says what has a manifest and is no image.
func artifact(m *v1.Manifest) string {
	if m.Config.MediaType.IsConfig() {
		return "a configuration that names no operating system and no architecture"
	}
	return "an artifact of type " + string(m.Config.MediaType)
}

// documents reads manifest and configuration of an image.
func (i *Image) documents(ctx context.Context, c content, digest v1.Hash) (*v1.Manifest, []byte, error) {
	b, err := i.document(ctx, c.manifest, digest)
	if err != nil {
		return nil, nil, err
	}
	m, err := v1.ParseManifest(bytes.NewReader(b))
	if err != nil {
		return nil, nil, damaged("%s: manifest %s: %w", i.Ref, digest, err)
	}
	if m.SchemaVersion != 2 || m.MediaType == types.DockerManifestSchema1Signed {
		return nil, nil, notImage(i.Ref, "a manifest of schema 1, which registries have given up")
	}
	config, err := i.document(ctx, func(ctx context.Context, h v1.Hash) ([]byte, error) {
		r, err := c.blob(ctx, h)
		if err != nil {
			return nil, err
		}
		defer r.Close()
		return io.ReadAll(io.LimitReader(r, maxDocument))
	}, m.Config.Digest)
	return m, config, err
}

// document reads what a digest names, and only that.
func (i *Image) document(ctx context.Context, get func(context.Context, v1.Hash) ([]byte, error), h v1.Hash) ([]byte, error) {
	b, err := get(ctx, h)
	if err != nil {
		return nil, err
	}
	sum, _, err := v1.SHA256(bytes.NewReader(b))
	if err == nil && sum != h {
		return nil, damaged("%s: a document is not what its digest says", i.Ref).WithWant(h.String(), sum.String())
	}
	return b, err
}

// take makes i the image with this digest.
func (i *Image) take(ctx context.Context, c content, digest v1.Hash) error {
	m, config, err := i.documents(ctx, c, digest)
	if err != nil {
		return err
	}
	i.Digest = digest.String()
	if err := i.configure(m, config); err != nil {
		return err
	}
	for n, d := range m.Layers {
		if strings.Contains(string(d.MediaType), "encrypted") {
			return report.Problemf(report.Failed, "%s: layer %d is encrypted", i.Ref, n+1).WithHint("probe it where it is built")
		}
		i.layers = append(i.layers, layer{
			digest: d.Digest, diffID: i.Config.RootFS.DiffIDs[n],
			open: func(ctx context.Context) (io.ReadCloser, error) { return c.blob(ctx, d.Digest) },
		})
	}
	return nil
}

func firstOf(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}
