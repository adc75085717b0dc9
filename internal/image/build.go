package image

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/invar-ops/invar/internal/build"
	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/run"
)

// A Request is one image to build.
type Request struct {
	Options
	Builder  string   // name of a builder; empty takes the first that answers
	Platform string   // "linux/arm64"; empty is this host's
	Binary   string   // invar for that platform; empty is this program
	Output   string   // OCI archive to write; empty leaves the image with the builder
	Push     bool     // to the registry of the tags
	Secrets  []string // "id=pip.conf,src=FILE"
	Epoch    int64    // SOURCE_DATE_EPOCH, seconds
	Release  string   // of invar, for the labels
	LogDir   string
	Runner   run.Runner
	Env      []string
	Progress report.Progress
}

// A Result is an image that was built.
type Result struct {
	Row      Row               `json:"image"`
	Platform string            `json:"platform"`
	Builder  Builder           `json:"builder"`
	From     string            `json:"from"` // the base by digest
	Digest   string            `json:"digest"`
	Tags     []string          `json:"tags"` // that name it now
	Output   string            `json:"output,omitempty"`
	Labels   map[string]string `json:"labels"`
	Log      string            `json:"log"`
}

// Build builds one image, checks it and only then gives it its tags. What fails
// on the way leaves no tag and no output file.
func Build(ctx context.Context, req Request) (Result, error) {
	rows, err := Plan(req.Options)
	if err != nil {
		return Result{}, err
	}
	if req.Platform == "" {
		req.Platform = "linux/" + runtime.GOARCH
	}
	row := rows[0] // the first operating system, when none is named
	if _, err := (Family{Name: row.Family, Platforms: row.Platforms}).platforms([]string{req.Platform}); err != nil {
		return Result{}, err
	}
	if err := checkTags(row.Tags); err != nil {
		return Result{}, err
	}
	res := Result{Row: row, Platform: req.Platform}
	if res.Builder, err = FindBuilder(ctx, req.Runner, req.Env, req.Builder); err != nil {
		return res, err
	}
	k := kindOf(res.Builder.Name)
	if err := k.accepts(req); err != nil {
		return res, err
	}
	from, err := resolve(ctx, req, res.Builder, row.Base)
	if err != nil {
		return res, err
	}
	res.From = from.From
	dir := filepath.Dir(req.Output)
	if req.Output == "" {
		dir = os.TempDir()
	}
	scratch, err := os.MkdirTemp(dir, ".invar-image-")
	if err != nil {
		return res, report.Problemf(report.Unmet, "no folder for the image: %w", err).WithHint("choose another folder with --output, or another TMPDIR")
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	job := Job{
		Row: row, Platform: req.Platform, Context: filepath.Join(scratch, "context"), From: from.From, Epoch: req.Epoch,
		Secrets: req.Secrets, Insecure: from.Insecure, Made: filepath.Join(scratch, "made"), Labels: before(row, req, from),
	}
	if err := prepare(job, req); err != nil {
		return res, onDisk(ctx, err, dir)
	}
	res.Log = filepath.Join(req.LogDir, "image-"+row.Name+"-"+filepath.Base(scratch)[len(".invar-image-"):]+".log")
	if err := carryOut(ctx, k, job, req, &res); err != nil {
		return res, err
	}
	if k.store {
		err = finishInStore(ctx, req, job, &res)
	} else {
		err = finishArchive(ctx, req, job, &res)
	}
	return res, onDisk(ctx, err, dir)
}

// onDisk gives errors of files in dir, a full disk first of all, the form of
// the others.
func onDisk(ctx context.Context, err error, dir string) error {
	_, known := errors.AsType[*report.Problem](err)
	if err == nil || known || ctx.Err() != nil {
		return err
	}
	p := report.Problemf(report.BuildFailed, "the image was not written: %w", err)
	p.State = "no tag and no file was made"
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		p.Want, p.Got = "room for twice the image", "no space left in "+dir
	}
	return p.WithHint("free some space, or choose another folder with --output, or another TMPDIR")
}

func kindOf(name string) kind {
	return kinds[slices.IndexFunc(kinds, func(k kind) bool { return k.name == name })]
}

// accepts refuses a request that would lose its image.
func (k kind) accepts(req Request) error {
	if !k.store && req.Output == "" && !req.Push && k.load == nil {
		return report.Usagef("%s keeps no images: say where this one goes", k.name).
			WithWant("--output FILE or --push", "neither").WithHint("invar image build --help")
	}
	if req.Push && req.Repository == LocalRepository {
		return report.Usagef("--push needs the name of a registry").WithWant("--repository NAME", "none").
			WithHint("for example --repository registry.example/me/invar")
	}
	return nil
}

func prepare(job Job, req Request) error {
	if err := os.Mkdir(job.Context, 0o755); err != nil {
		return err
	}
	binary := req.Binary
	if binary == "" {
		var err error
		if binary, err = os.Executable(); err != nil {
			return err
		}
	}
	return writeContext(job.Context, job.Row, binary, job.Platform)
}

// carryOut runs the builder; the last lines of a failure and what explain
// knows about them go into the error.
func carryOut(ctx context.Context, k kind, job Job, req Request, res *Result) error {
	if err := os.MkdirAll(filepath.Dir(res.Log), 0o755); err != nil {
		return err
	}
	step := req.Progress.Start(stage, job.Name+" by "+k.name, -1)
	tidy := k.remember(ctx, req)
	seen := &steps{progress: req.Progress}
	_, err := req.Runner.Run(ctx, run.Cmd{Argv: k.argv(k.name, job), Env: req.Env, Log: res.Log, Output: seen})
	tidy()
	seen.end(err)
	if err == nil {
		step.Done("")
		return nil
	}
	step.Fail(err)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return failedStep(err, "the image "+job.Name+" was not built", res.Log, seen.failure())
}

// stage is what progress calls the building of images.
const stage = "image"

// failed is a command of a builder that did not work: exit code 4, nothing tagged.
func failed(err error, what, log string) *report.Problem { return failedStep(err, what, log, nil) }

// failedStep is failed with what the step printed in which it happened.
func failedStep(err error, what, log string, lines []string) *report.Problem {
	p := report.Problemf(report.BuildFailed, "%s: %w", what, err)
	p.Log, p.State = log, "no tag and no file was made"
	if re, ok := asRunError(err); ok {
		p.Tail = re.Tail(12)
	}
	tell(p, lines)
	if p.Cause == "" {
		build.Diagnose(p, log)
	}
	switch {
	case p.Hint == "" && p.Cause != "":
		p.Hint = "give the base image what it lacks (--base), or the build an argument that helps (--build-arg)"
	case p.Hint == "":
		p.Hint = "the log has the whole output of the builder"
	}
	return p
}

// partly says of a failure which tags a registry has already: each is whole.
func partly(p *report.Problem, done []string) *report.Problem {
	if len(done) > 0 {
		p.State = "pushed before: " + strings.Join(done, ", ")
	}
	return p
}

// before are the labels that are known before the build.
func before(row Row, req Request, from base) map[string]string {
	l := map[string]string{
		"org.opencontainers.image.title":   "invar " + row.Family,
		"org.opencontainers.image.version": req.Version,
		labelPrefix + "version":            req.Release,
		labelPrefix + "os":                 row.OS,
	}
	if from.From != scratch {
		l["org.opencontainers.image.base.name"] = row.Base
	}
	for name, value := range map[string]string{
		"org.opencontainers.image.base.digest": from.Digest,
		labelPrefix + "target":                 row.Target,
		labelPrefix + "soc":                    row.SoC,
		labelPrefix + "cann":                   row.Args["CANN_VERSION"],
	} {
		if value != "" {
			l[name] = value
		}
	}
	return l
}

// merged are both sets of labels; later ones win.
func merged(sets ...map[string]string) map[string]string {
	out := map[string]string{}
	for _, s := range sets {
		maps.Copy(out, s)
	}
	return out
}

// checkConfig refuses settings that must not outlive the build; nil is none.
func checkConfig(env []string) *report.Problem {
	for _, e := range env {
		if name, _, _ := strings.Cut(e, "="); name == "VLLM_BATCH_INVARIANT" {
			return report.Problemf(report.BuildFailed, "the image sets VLLM_BATCH_INVARIANT").
				WithWant("it to be set when a server starts, by who starts it", e).
				WithHint("remove it from the environment of the base image")
		}
	}
	return nil
}
