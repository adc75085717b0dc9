package imagefs

import (
	"bytes"
	"context"
	"encoding/json"
	"io"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/invar-ops/invar/internal/report"
)

// saved is one image in the manifest.json of docker save.
type saved struct {
	Config   string
	RepoTags []string
	Layers   []string
}

// fromDocker takes an image of a docker archive. Its layers have no digest as
// stored: the configuration names what is in them.
func (i *Image) fromDocker(a *archive, want wish, tag string) error {
	b, err := a.read("manifest.json")
	if err != nil {
		return err
	}
	var list []saved
	if err := json.Unmarshal(b, &list); err != nil {
		return notImage(i.Ref, "a manifest.json that is none of docker's: "+err.Error())
	}
	var all []candidate
	configs := make([][]byte, len(list))
	for n, s := range list {
		if configs[n], err = a.read(s.Config); err != nil {
			return err
		}
		c, err := v1.ParseConfigFile(bytes.NewReader(configs[n]))
		if err != nil || c.Platform() == nil {
			return notImage(i.Ref, s.Config+", which is no configuration")
		}
		names := s.RepoTags
		if len(names) == 0 {
			names = []string{""}
		}
		for _, t := range names {
			all = append(all, candidate{platform: *c.Platform(), tag: t, index: n})
		}
	}
	got, err := choose(i.Ref, all, want, tag)
	if err != nil {
		return err
	}
	return i.takeSaved(a, list[got.index], configs[got.index])
}

func (i *Image) takeSaved(a *archive, s saved, config []byte) error {
	id, _, err := v1.SHA256(bytes.NewReader(config))
	if err != nil {
		return err
	}
	m := &v1.Manifest{Config: v1.Descriptor{Digest: id}}
	for _, name := range s.Layers {
		r, size, err := a.open(name)
		if err != nil {
			return err
		}
		_ = r.Close()
		m.Layers = append(m.Layers, v1.Descriptor{Size: size})
	}
	if err := i.configure(m, config); err != nil {
		return err
	}
	for n, name := range s.Layers {
		i.layers = append(i.layers, layer{diffID: i.Config.RootFS.DiffIDs[n], open: func(context.Context) (io.ReadCloser, error) {
			r, _, err := a.open(name)
			return r, err
		}})
	}
	if len(i.layers) == 0 {
		return report.Usagef("%s: an image without layers", i.Ref)
	}
	return nil
}
