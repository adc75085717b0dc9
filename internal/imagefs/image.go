// Package imagefs reads container images that nobody starts: from a registry,
// an OCI layout or an archive, without a daemon and without root. Digests are
// checked, layers are applied inside one folder, and nothing of the image is
// run.
package imagefs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/invar-ops/invar/internal/report"
)

// Options say which image.
type Options struct {
	Ref      string // reference in a registry, or path of a layout or an archive; PATH:TAG names one of several
	Platform string // "linux/arm64"; empty takes this host's where there is a choice
	Scratch  string // folder for temporary files; empty is the system's
	Progress report.Progress
}

// An Image is one image for one platform.
type Image struct {
	Ref      string         `json:"reference"`
	Kind     string         `json:"kind"`             // "registry", "OCI layout", "OCI archive", "docker archive"
	Digest   string         `json:"digest,omitempty"` // of the manifest; docker archives have none
	ID       string         `json:"id"`               // digest of the configuration
	Platform string         `json:"platform"`         // "linux/amd64"
	Layers   []Layer        `json:"layers"`
	Leftover []Leftover     `json:"leftovers"`    // found by Unpack
	Hidden   int64          `json:"hidden_bytes"` // that later layers remove and a pull transfers all the same
	Refused  []string       `json:"refused"`      // entries that were not unpacked, and why
	Config   *v1.ConfigFile `json:"-"`

	layers  []layer
	tree    *tree // of Unpack
	scratch string
	done    report.Progress
	close   []func()
}

// A Layer is one layer as stored. What made it is left out: the history may hold
// credentials.
type Layer struct {
	Digest string `json:"digest,omitempty"` // as stored; docker archives do not say
	DiffID string `json:"diff_id"`          // of the tar in it
	Bytes  int64  `json:"bytes"`            // as stored
	Files  int    `json:"files"`            // entries, counted by Unpack
}

// Open finds the image and reads its manifest and its configuration. The caller
// closes it.
func Open(ctx context.Context, o Options) (*Image, error) {
	if o.Progress == nil {
		o.Progress = report.Discard
	}
	img := &Image{Ref: o.Ref, Leftover: []Leftover{}, Refused: []string{}, scratch: o.Scratch, done: o.Progress}
	err := img.open(ctx, o)
	if err != nil {
		img.Close()
		return nil, err
	}
	return img, nil
}

// Close gives back what Open took.
func (i *Image) Close() {
	for _, f := range i.close {
		f()
	}
	i.close = nil
}

func (i *Image) open(ctx context.Context, o Options) error {
	want, err := platformOf(o.Platform)
	if err != nil {
		return err
	}
	path, tag, isPath, err := locate(o.Ref)
	if err != nil {
		return err
	}
	if !isPath {
		return i.fromRegistry(ctx, want)
	}
	a, err := i.openArchive(ctx, path)
	if err != nil {
		return err
	}
	switch {
	case a.has("index.json"):
		i.Kind = a.kind("OCI layout", "OCI archive")
		return i.fromLayout(ctx, a, want, tag)
	case a.has("manifest.json"):
		i.Kind = a.kind("unpacked docker archive", "docker archive")
		return i.fromDocker(a, want, tag)
	}
	return notImage(o.Ref, "no index.json and no manifest.json in it, but "+a.some())
}

// locate says whether ref is a path, and which tag stands behind it.
func locate(ref string) (path, tag string, isPath bool, err error) {
	for _, transport := range []string{"oci-archive:", "docker-archive:", "oci:"} { // as skopeo and podman write them
		if rest, ok := strings.CutPrefix(ref, transport); ok {
			ref, isPath = rest, true
		}
	}
	if exists(ref) {
		return ref, "", true, nil
	}
	for at, c := range ref { // a tag may be a whole name with colons of its own
		if c == ':' && at > 0 && exists(ref[:at]) {
			return ref[:at], ref[at+1:], true, nil
		}
	}
	for _, begin := range []string{"/", "./", "../", "~"} {
		isPath = isPath || strings.HasPrefix(ref, begin)
	}
	for _, end := range []string{".tar", ".tar.gz", ".tgz", ".tar.zst"} {
		isPath = isPath || strings.HasSuffix(ref, end)
	}
	if isPath {
		return "", "", true, report.Usagef("%s: no such file", ref).WithHint("name an archive, the folder of an OCI layout, or a reference such as registry.example/name:tag")
	}
	return "", "", false, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func notImage(ref, got string) error {
	return report.Usagef("%s is no image", ref).
		WithWant("an OCI layout, an OCI archive, or what docker save writes", got).
		WithHint("an unpacked root file system is probed with --root DIR")
}

// damaged is the error for an image whose content is not what it says.
func damaged(format string, args ...any) *report.Problem {
	p := report.Problemf(report.Failed, format, args...).WithHint("pull or save the image again")
	if errors.Is(p.Err, io.ErrUnexpectedEOF) {
		p.Got = "it is cut short"
	}
	return p
}

// configure takes manifest and configuration over, which have to agree.
func (i *Image) configure(m *v1.Manifest, config []byte) error {
	c, err := v1.ParseConfigFile(strings.NewReader(string(config)))
	if err != nil {
		return notImage(i.Ref, "a configuration that is none: "+err.Error())
	}
	if c.Platform() == nil {
		return notImage(i.Ref, artifact(m))
	}
	if len(c.RootFS.DiffIDs) != len(m.Layers) {
		return notImage(i.Ref, fmt.Sprintf("%d layers, and %d in its configuration", len(m.Layers), len(c.RootFS.DiffIDs)))
	}
	i.Config, i.ID = c, m.Config.Digest.String()
	i.Platform = c.Platform().String()
	for n, d := range m.Layers {
		i.Layers = append(i.Layers, Layer{DiffID: c.RootFS.DiffIDs[n].String(), Bytes: d.Size})
		if d.Digest.Hex != "" {
			i.Layers[n].Digest = d.Digest.String()
		}
	}
	return nil
}
