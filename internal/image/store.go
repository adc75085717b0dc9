package image

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/invar-ops/invar/internal/run"
)

func asRunError(err error) (*run.Error, bool) { return errors.AsType[*run.Error](err) }

// finishInStore takes the image that buildah or podman left without a name,
// reads its receipt, adds the labels that come from it, and then names it.
func finishInStore(ctx context.Context, req Request, job Job, res *Result) error {
	id, err := os.ReadFile(job.Made)
	if err != nil {
		return err
	}
	s := storeImage{req: req, job: job, log: res.Log, program: res.Builder.Name, id: strings.TrimSpace(string(id))}
	defer s.discard()
	added, err := s.read(ctx)
	if err != nil {
		return err
	}
	if err := s.relabel(ctx, added); err != nil {
		return failed(err, "the image's labels were not written", res.Log)
	}
	res.Labels = merged(job.Labels, added)
	return s.publish(ctx, s.final, res)
}

// A storeImage is an image in the local store of buildah or podman and the
// container that was made from it to read it.
type storeImage struct {
	req       Request
	job       Job
	log       string
	program   string
	id        string // of the image that the builder made
	final     string // of the one that is published; "" before there is one
	keep      bool   // final has a name, or was there before
	container string
	receipts  receipts
	env       []string
}

func (s *storeImage) run(ctx context.Context, args ...string) (string, error) {
	res, err := s.req.Runner.Run(ctx, run.Cmd{Argv: append([]string{s.program}, args...), Env: s.req.Env, Log: s.log})
	return strings.TrimSpace(string(res.Stdout)), err
}

// read judges the image, and gives the labels that its receipt asks for; one
// without operators has no receipt.
func (s *storeImage) read(ctx context.Context) (map[string]string, error) {
	if err := s.open(ctx); err != nil {
		return nil, failed(err, "the built image cannot be opened", s.log)
	}
	if err := checkConfig(s.env); err != nil {
		return nil, err
	}
	if s.job.Require == 0 {
		return nil, nil
	}
	rec, err := s.receipts.only()
	if err != nil {
		return nil, err
	}
	return labels(rec), nil
}

// open makes a container from the image, which starts nothing, and reads it.
func (s *storeImage) open(ctx context.Context) error {
	s.receipts = newReceipts()
	var err error
	if s.program == "podman" {
		s.container, err = s.run(ctx, "create", s.id)
	} else {
		s.container, err = s.run(ctx, "from", "--pull-never", s.id)
	}
	if err != nil {
		return err
	}
	config, err := s.run(ctx, "inspect", "--type", "image", "--format", map[bool]string{
		true:  `{{range .Config.Env}}{{.}}{{"\n"}}{{end}}`,
		false: `{{range .OCIv1.Config.Env}}{{.}}{{"\n"}}{{end}}`,
	}[s.program == "podman"], s.id)
	if err != nil {
		return err
	}
	s.env = strings.Split(config, "\n")
	dir, err := s.run(ctx, "mount", s.container)
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	if err := s.receipts.fromDir(root.FS().(fs.ReadLinkFS)); err != nil {
		return err
	}
	_, err = s.run(ctx, "umount", s.container)
	return err
}

// relabel makes the final image: with more labels.
func (s *storeImage) relabel(ctx context.Context, added map[string]string) (err error) {
	if s.program != "podman" {
		return s.rewrite(ctx, added)
	}
	args := []string{"commit", "--quiet", "--format", "docker"}
	for _, l := range pairs(added) {
		args = append(args, "--change", "LABEL "+quoteLabel(l))
	}
	s.final, err = s.run(ctx, append(args, s.container)...)
	return err
}

func quoteLabel(l string) string {
	k, v, _ := strings.Cut(l, "=")
	return k + "=" + strconv.Quote(v)
}

// publish writes, pushes or tags the image, in this order: names come last.
func (s *storeImage) publish(ctx context.Context, id string, res *Result) error {
	tls := "--tls-verify=true"
	if s.req.Repository != "" && loopbackTag(s.job.Tags[0]) {
		tls = "--tls-verify=false"
	}
	digests := filepath.Join(filepath.Dir(s.job.Made), "digest")
	var destinations []string
	part := s.job.Made + ".tar"
	if s.req.Output != "" {
		// docker-archive keeps the health check, which OCI's configuration has no field for.
		destinations = append(destinations, "docker-archive:"+part)
	}
	if s.req.Push {
		for _, t := range s.job.Tags {
			destinations = append(destinations, "docker://"+t)
		}
	}
	for _, d := range destinations {
		if _, err := s.run(ctx, "push", "--quiet", tls, "--digestfile", digests, id, d); err != nil {
			return partly(failed(err, "the image was built and not written", s.log), res.Tags)
		}
		if tag, ok := strings.CutPrefix(d, "docker://"); ok {
			res.Tags = append(res.Tags, tag)
		}
		b, err := os.ReadFile(digests)
		if err != nil {
			return err
		}
		res.Digest = strings.TrimSpace(string(b))
	}
	if s.req.Output != "" {
		if err := os.Rename(part, s.req.Output); err != nil {
			return err
		}
		res.Output = s.req.Output
	}
	if s.req.Output == "" && !s.req.Push {
		if _, err := s.run(ctx, append([]string{"tag", id}, s.job.Tags...)...); err != nil {
			return failed(err, "the image was built and not tagged", s.log)
		}
		s.keep = true
		res.Tags, res.Digest = s.job.Tags, "sha256:"+strings.TrimPrefix(id, "sha256:")
	}
	return nil
}

// remember notes which working containers there are; the function that it
// returns removes those that came since, which a build leaves when a signal
// ends it. Nothing else tells whose a working container is.
func (k kind) remember(ctx context.Context, req Request) func() {
	if k.name != "buildah" {
		return func() {}
	}
	before := workingContainers(ctx, req)
	return func() {
		if ctx.Err() == nil { // the build has tidied up itself
			return
		}
		// The caller's context has ended: that is why there is something to do.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		for _, id := range workingContainers(ctx, req) {
			if !slices.Contains(before, id) {
				_, _ = req.Runner.Run(ctx, run.Cmd{Argv: []string{k.name, "rm", id}, Env: req.Env})
			}
		}
	}
}

func workingContainers(ctx context.Context, req Request) []string {
	res, err := req.Runner.Run(ctx, run.Cmd{Argv: []string{"buildah", "containers", "--quiet", "--notruncate"}, Env: req.Env, Timeout: time.Minute})
	if err != nil {
		return nil
	}
	return strings.Fields(string(res.Stdout))
}

// discard removes the container and the images without a name, whatever
// happened before, an interrupt included.
func (s *storeImage) discard() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if s.container != "" {
		_, _ = s.run(ctx, "rm", s.container)
	}
	if s.final != "" && !s.keep {
		_, _ = s.run(ctx, "rmi", "--force", s.final)
	}
	if s.final != s.id {
		_, _ = s.run(ctx, "rmi", s.id)
	}
}
