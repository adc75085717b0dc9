package python

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/run"
)

// ready marks an environment whose installation finished.
const ready = ".invar-ready"

// A Recipe says what environment invar makes when the host has none with torch.
type Recipe struct {
	Base       Python   `json:"base"`            // interpreter to start from
	Dir        string   `json:"dir"`             // where it goes
	Packages   []string `json:"packages"`        // requirement specifiers, torch first
	Index      string   `json:"index,omitempty"` // asked first; empty uses only the configured index
	Explicit   bool     `json:"explicit"`        // Index was given by the user: no fall-back
	Wheelhouse string   `json:"wheelhouse,omitempty"`
	Offline    bool     `json:"offline,omitempty"`
	Installer  string   `json:"installer"` // "uv" or "pip"
	Download   string   `json:"download"`  // how large it is, for people
}

// Reason says, for people, why the environment has to be made.
func (r Recipe) Reason() string {
	if r.Base.Why != "" { // it was named, not looked for
		return r.Base.Exe + " (" + r.Base.Why + ") has no torch"
	}
	return "none with torch found"
}

// IndexTimeout is how long the first index may take to answer before the
// configured one is used; PyTorch's answers in well under a second.
const IndexTimeout = 4 * time.Second

// Commands are the processes that make the environment from index.
func (r Recipe) Commands(index string) [][]string {
	py := filepath.Join(r.Dir, "bin", "python")
	if r.Installer == "uv" {
		install := append([]string{"uv", "pip", "install", "--python", py}, r.source(index, "--index")...)
		return [][]string{
			{"uv", "venv", "--quiet", "--seed", "--python", r.Base.Exe, r.Dir},
			append(install, r.Packages...),
		}
	}
	install := append([]string{py, "-m", "pip", "install", "--no-input"}, r.source(index, "--extra-index-url")...)
	return [][]string{
		{r.Base.Exe, "-m", "venv", r.Dir},
		append(install, r.Packages...),
	}
}

func (r Recipe) source(index, flag string) []string {
	var out []string
	if r.Wheelhouse != "" {
		out = append(out, "--find-links", r.Wheelhouse)
	}
	if r.Offline {
		// uv may take what its cache holds; pip cannot without asking an index.
		if r.Wheelhouse == "" && r.Installer == "uv" {
			return append(out, "--offline")
		}
		return append(out, "--no-index")
	}
	if index != "" {
		out = append(out, flag, index)
	}
	return out
}

// Make carries out the recipe as one step of p. An unfinished environment from
// an earlier try is removed first.
func Make(ctx context.Context, r Recipe, o Options, log, stage string, p report.Progress) (Python, error) {
	step := p.Start(stage, "environment with "+r.Packages[0], -1)
	w := watched{o.Runner, newDownloads(step)}
	o.Runner = w
	py, err := carryOut(ctx, r, o, log, p)
	if err != nil {
		step.Fail(err)
		return py, err
	}
	step.Done(py.Exe + ", torch " + py.Torch.Version + w.d.text())
	return py, nil
}

func carryOut(ctx context.Context, r Recipe, o Options, log string, p report.Progress) (Python, error) {
	index := r.Index
	if index != "" && !r.Offline && !r.Explicit {
		if err := reach(ctx, index); err != nil {
			p.Note("index " + index + " is not reached (" + err.Error() + "); using the configured one")
			index = ""
		}
	}
	if err := os.RemoveAll(r.Dir); err != nil {
		return Python{}, report.Problemf(report.Failed, "old environment: %w", err)
	}
	for _, argv := range r.Commands(index) {
		_, err := o.Runner.Run(ctx, run.Cmd{Argv: argv, Env: o.Env, Log: log})
		if err != nil {
			_ = os.RemoveAll(r.Dir)
			return Python{}, makeProblem(err, log)
		}
	}
	py, ok := Inspect(filepath.Join(r.Dir, "bin", "python"))
	if !ok || !py.HasTorch() {
		_ = os.RemoveAll(r.Dir)
		return Python{}, report.Problemf(report.Failed, "the environment %s holds no torch after its installation", r.Dir)
	}
	if err := os.WriteFile(filepath.Join(r.Dir, ready), nil, 0o644); err != nil {
		return Python{}, err
	}
	py.Own, py.Why = true, "made by invar"
	return py, nil
}

func makeProblem(err error, log string) error {
	pr := report.Problemf(report.BuildFailed, "python environment: %w", err)
	pr.Log = log
	if re, ok := errors.AsType[*run.Error](err); ok {
		pr.Tail = re.Tail(12)
	}
	return pr.WithHint("pass --python with an environment that has torch, or --torch-index, --wheelhouse")
}

// reach asks index for torch's page; any answer below 400 counts.
func reach(ctx context.Context, index string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, IndexTimeout, &run.TimeoutError{After: IndexTimeout})
	defer cancel()
	url := strings.TrimSuffix(index, "/") + "/torch/"
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, url, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return cause
		}
		if ue, ok := errors.AsType[*net.DNSError](err); ok {
			return errors.New(ue.Err) // without the address of the resolver
		}
		return err
	}
	_ = resp.Body.Close()
	if resp.StatusCode >= http.StatusBadRequest {
		return report.Problemf(report.Failed, "it answers %s", resp.Status)
	}
	return nil
}

// Result is the environment that r makes, as far as it is known before.
func (r Recipe) Result() Python {
	site := filepath.Join(r.Dir, "lib", "python"+r.Base.Minor(), "site-packages")
	return Python{
		Exe: filepath.Join(r.Dir, "bin", "python"), Version: r.Base.Version, Prefix: r.Dir,
		Purelib: site, Paths: []string{site}, Venv: true, Own: true, Why: "made by invar",
		Torch: Dist{Name: "torch", Version: strings.TrimPrefix(r.Packages[0], "torch=="), Dir: site},
	}
}
