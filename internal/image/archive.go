package image

import (
	"context"
	"fmt"
	"os"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/run"
)

// finishArchive takes the OCI archive that BuildKit wrote, reads the receipt
// out of its layers, adds the labels that come from it, and writes or pushes it.
func finishArchive(ctx context.Context, req Request, job Job, res *Result) error {
	dir := job.Made + ".oci"
	if err := untar(job.Made, dir); err != nil {
		return failed(err, "the builder's archive cannot be read", res.Log)
	}
	_ = os.Remove(job.Made) // an image may be large
	img, err := onlyImage(dir, job.Platform)
	if err != nil {
		return failed(err, "the builder's archive cannot be read", res.Log)
	}
	added, err := labelsIn(img, job, res.Log)
	if err != nil {
		return err
	}
	config, err := img.ConfigFile()
	if err != nil {
		return err
	}
	if err := checkConfig(config.Config.Env); err != nil {
		return err
	}
	config = config.DeepCopy()
	res.Labels = merged(config.Config.Labels, added)
	config.Config.Labels = res.Labels
	if img, err = mutate.ConfigFile(img, config); err != nil {
		return err
	}
	digest, err := img.Digest()
	if err != nil {
		return err
	}
	res.Digest = digest.String()
	if req.Push {
		if res.Tags, err = push(ctx, req, img, job.Tags); err != nil {
			return partly(failed(err, "the image was built and not pushed", res.Log), res.Tags)
		}
	}
	return keep(ctx, req, job, img, res)
}

// labelsIn are the labels that the receipt inside an image gives; one without
// operators has none.
func labelsIn(img v1.Image, job Job, log string) (map[string]string, error) {
	if job.Require == 0 {
		return nil, nil
	}
	found := newReceipts()
	stream := mutate.Extract(img)
	err := found.fromTar(stream)
	_ = stream.Close()
	if err != nil {
		return nil, failed(err, "the layers of the image cannot be read", log)
	}
	rec, err := found.only()
	if err != nil {
		return nil, err
	}
	return labels(rec), nil
}

// keep writes the archive for --output, or gives the image to docker's store.
func keep(ctx context.Context, req Request, job Job, img v1.Image, res *Result) error {
	load := kindOf(res.Builder.Name).load
	if req.Output == "" && (req.Push || load == nil) {
		return nil
	}
	part := job.Made + ".tar"
	if err := writeArchive(img, part, job); err != nil {
		return failed(err, "the image was built and not written", res.Log)
	}
	if req.Output != "" {
		if err := os.Rename(part, req.Output); err != nil {
			return err
		}
		res.Output = req.Output
		return nil
	}
	if _, err := req.Runner.Run(ctx, run.Cmd{Argv: load(part), Env: req.Env, Log: res.Log}); err != nil {
		return failed(err, "the image was built and not loaded", res.Log)
	}
	res.Tags = job.Tags
	return nil
}

// onlyImage is the image of a layout for one platform. BuildKit may put an
// index with attestations around it.
func onlyImage(dir, platform string) (v1.Image, error) {
	path, err := layout.FromPath(dir)
	if err != nil {
		return nil, err
	}
	index, err := path.ImageIndex()
	if err != nil {
		return nil, err
	}
	want, err := v1.ParsePlatform(platform)
	if err != nil {
		return nil, err
	}
	return findImage(index, *want)
}

func findImage(index v1.ImageIndex, want v1.Platform) (v1.Image, error) {
	m, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	for _, d := range m.Manifests {
		switch {
		case d.MediaType.IsIndex():
			inner, err := index.ImageIndex(d.Digest)
			if err != nil {
				return nil, err
			}
			return findImage(inner, want)
		case d.MediaType.IsImage() && (d.Platform == nil || d.Platform.Satisfies(want)):
			return index.Image(d.Digest)
		}
	}
	return nil, fmt.Errorf("no image for %s among %d manifests", want, len(m.Manifests))
}

// push gives the image to a registry under each tag, and says which it has.
func push(ctx context.Context, req Request, img v1.Image, tags []string) (done []string, err error) {
	step := req.Progress.Start(stage, "push", -1)
	for _, t := range tags {
		ref, err := name.NewTag(t)
		if err == nil {
			err = remote.Write(ref, img, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain))
		}
		if err != nil {
			step.Fail(err)
			return done, err
		}
		done = append(done, t)
	}
	step.Done("")
	return done, nil
}

// loopbackTag reports whether a tag is in a registry on this machine.
func loopbackTag(t string) bool {
	ref, err := name.ParseReference(t)
	return err == nil && loopback(ref.Context().RegistryStr())
}

func tagOf(t string) string {
	if ref, err := name.NewTag(t); err == nil {
		return ref.TagStr()
	}
	return t
}

// checkTags refuses names that no registry would take, before anything is built.
func checkTags(tags []string) error {
	for _, t := range tags {
		if _, err := name.NewTag(t, name.StrictValidation); err != nil {
			return report.Usagef("image name %q: %s", t, err).WithHint("for example --repository registry.example/me/invar --tag 1.0.0")
		}
	}
	return nil
}
