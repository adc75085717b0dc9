package image

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

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
	from, err := resolve(ctx, req.Runner, req.Env, res.Builder, row.Base)
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
		return res, err
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
	return res, err
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
	step := req.Progress.Start("image", job.Name+" by "+k.name, -1)
	if err := os.MkdirAll(filepath.Dir(res.Log), 0o755); err != nil {
		return err
	}
	tidy := k.remember(ctx, req)
	_, err := req.Runner.Run(ctx, run.Cmd{Argv: k.argv(k.name, job), Env: req.Env, Log: res.Log})
	tidy()
	if err == nil {
		step.Done("")
		return nil
	}
	step.Fail(err)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return failed(err, "the image "+job.Name+" was not built", res.Log)
}

// failed is a command of a builder that did not work: exit code 4, nothing tagged.
func failed(err error, what, log string) error {
	p := report.Problemf(report.BuildFailed, "%s: %w", what, err)
	p.Log, p.State = log, "no tag and no file was made"
	if re, ok := asRunError(err); ok {
		p.Tail = re.Tail(12)
	}
	build.Diagnose(p, log)
	if p.Hint == "" {
		p.Hint = "the log has the whole output of the builder"
	}
	return p
}

// before are the labels that are known before the build.
func before(row Row, req Request, from base) map[string]string {
	l := map[string]string{
		"org.opencontainers.image.title":       "invar " + row.Family,
		"org.opencontainers.image.version":     req.Version,
		"org.opencontainers.image.base.name":   row.Base,
		"org.opencontainers.image.base.digest": from.Digest,
		labelPrefix + "version":                req.Release,
		labelPrefix + "target":                 row.Target,
		labelPrefix + "os":                     row.OS,
	}
	if row.SoC != "" {
		l[labelPrefix+"soc"] = row.SoC
	}
	if v := row.Args["CANN_VERSION"]; v != "" {
		l[labelPrefix+"cann"] = v
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

// checkConfig refuses settings that must not outlive the build.
func checkConfig(env []string) error {
	for _, e := range env {
		if name, _, _ := strings.Cut(e, "="); name == "VLLM_BATCH_INVARIANT" {
			return report.Problemf(report.BuildFailed, "the image sets VLLM_BATCH_INVARIANT").
				WithWant("it to be set when a server starts, by who starts it", e).
				WithHint("remove it from the environment of the base image")
		}
	}
	return nil
}
