package image

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"os"
	"slices"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// A blob is one file of an OCI layout.
type blob struct {
	size int64
	open func() (io.ReadCloser, error)
}

func inMemory(b []byte) blob {
	return blob{int64(len(b)), func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b)), nil }}
}

// writeArchive writes an OCI layout as a tar: names sorted, times of the epoch.
// Layers go straight from where they are into it.
func writeArchive(img v1.Image, file string, job Job) error {
	files, err := layoutOf(img, job)
	if err != nil {
		return err
	}
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	w := tar.NewWriter(out)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err = files[name].write(w, name, time.Unix(job.Epoch, 0).UTC()); err != nil {
			break
		}
	}
	if cerr := w.Close(); err == nil {
		err = cerr
	}
	if cerr := out.Close(); err == nil {
		err = cerr
	}
	return err
}

func (b blob) write(w *tar.Writer, name string, at time.Time) error {
	h := &tar.Header{Name: name, Mode: 0o644, Size: b.size, ModTime: at, Typeflag: tar.TypeReg}
	if err := w.WriteHeader(h); err != nil {
		return err
	}
	r, err := b.open()
	if err != nil {
		return err
	}
	_, err = io.Copy(w, r)
	if cerr := r.Close(); err == nil {
		err = cerr
	}
	return err
}

// layoutOf are the files of an OCI layout that holds one image.
func layoutOf(img v1.Image, job Job) (map[string]blob, error) {
	manifest, err := img.RawManifest()
	if err != nil {
		return nil, err
	}
	config, err := img.RawConfigFile()
	if err != nil {
		return nil, err
	}
	named, err := img.Manifest()
	if err != nil {
		return nil, err
	}
	digest, err := img.Digest()
	if err != nil {
		return nil, err
	}
	top := v1.Descriptor{MediaType: named.MediaType, Digest: digest, Size: int64(len(manifest))}
	if len(job.Tags) > 0 {
		top.Annotations = map[string]string{"org.opencontainers.image.ref.name": tagOf(job.Tags[0]), "io.containerd.image.name": job.Tags[0]}
	}
	index, err := json.Marshal(v1.IndexManifest{SchemaVersion: 2, MediaType: types.OCIImageIndex, Manifests: []v1.Descriptor{top}})
	if err != nil {
		return nil, err
	}
	files := map[string]blob{
		"oci-layout": inMemory([]byte(`{"imageLayoutVersion":"1.0.0"}`)), "index.json": inMemory(index),
		blobName(digest): inMemory(manifest), blobName(named.Config.Digest): inMemory(config),
	}
	layers, err := img.Layers()
	if err != nil {
		return nil, err
	}
	for i, l := range layers {
		files[blobName(named.Layers[i].Digest)] = blob{named.Layers[i].Size, l.Compressed}
	}
	return files, nil
}

func blobName(h v1.Hash) string { return "blobs/" + h.Algorithm + "/" + h.Hex }
