package opcheck

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/invar-ops/invar/internal/install"
	"github.com/invar-ops/invar/internal/probe"
	"github.com/invar-ops/invar/internal/python"
	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/run"
)

// Options say what to verify and how deep.
type Options struct {
	Operators []string // "mm", "torch:mm", "package.module:function", "file.py:function"; empty is all of the target
	Preset    string
	Family    string // how the operators are called; empty goes by name
	Size      int    // length of the reduction instead of the family's
	Columns   int
	Dtypes    []string
	Rows      []int // numbers of rows instead of the profile's
	Full      bool
	Out       string // folder for reproducers; empty writes none

	Prefix   string
	Python   string
	Runner   run.Runner
	Env      []string
	Progress report.Progress
}

// limit of the Python process: the full sweep of every operator takes minutes.
const limit = time.Hour

// A request is what scripts/invar_probe/verify.py reads.
type request struct {
	Do        string         `json:"do"`
	Module    string         `json:"module"`
	Namespace string         `json:"namespace"`
	Schedule  probe.Schedule `json:"schedule"`
	Seeds     []int64        `json:"seeds"`
	Reproduce bool           `json:"reproduce"`
}

// answer is what it writes.
type answer struct {
	Cases     []Case            `json:"cases"`
	Settings  []Setting         `json:"settings"`
	LeftOut   []string          `json:"left_out"`
	Torch     string            `json:"torch"`
	Locations map[string]string `json:"locations"`
	Seconds   float64           `json:"seconds"`
}

// Run verifies the operators. The error says with which exit code a program
// should end: 5 when bits depend on the batch, 6 when that could not be shown.
func Run(ctx context.Context, o Options) (Result, error) {
	start := time.Now()
	f, err := load()
	if err != nil {
		return Result{}, err
	}
	req, preset, err := o.request(f)
	if err != nil {
		return Result{}, err
	}
	if req.Schedule.Operators, err = o.existing(req); err != nil {
		return Result{}, err
	}
	exe, err := o.interpreter(ctx, &req)
	if err != nil {
		return Result{}, err
	}
	step := o.Progress.Start("verify", "operators", int64(len(req.Schedule.Operators)*len(req.Schedule.Dtypes)*len(req.Seeds)))
	var a answer
	var last int64
	err = probe.Ask(ctx, probe.Options{Python: exe, Env: o.Env, Runner: o.Runner}, req, &a, limit, func(done, _ int64) {
		step.Add(max(0, done-last))
		last = done
	})
	if err != nil {
		step.Fail(err)
		return Result{}, err
	}
	step.Done(fmt.Sprintf("%d cases", len(a.Cases)))
	res := judge(a, preset, exe)
	if err := o.reproducers(ctx, &res, exe); err != nil {
		return res, err
	}
	res.Elapsed = time.Since(start)
	return res, res.err()
}

// request makes the schedule; operators may still be names.
func (o Options) request(f families) (request, string, error) {
	profile := "quick"
	if o.Full {
		profile = "full"
	}
	s, err := probe.LoadSchedule(profile)
	if err != nil {
		return request{}, "", err
	}
	lines := s.Operators
	// What the probe asks beside is not asked here: each case has its own control.
	s.Control, s.Observe, s.Routed, s.Operators = nil, nil, nil, nil
	req := request{Do: "verify", Namespace: install.Package, Seeds: []int64{s.Seed}, Reproduce: o.Out != ""}
	if o.Preset != "" {
		p, err := f.preset(o.Preset)
		if err != nil {
			return req, "", err
		}
		s.Dtypes, s.Operators = p.Dtypes, f.instead(p, o)
		if len(p.Rows) > 0 {
			only(&s, p.Rows)
		}
		for i := 1; i < p.Seeds; i++ {
			req.Seeds = append(req.Seeds, s.Seed+int64(i))
		}
	}
	for _, name := range o.Operators {
		if o.Preset != "" {
			break // they stand in the preset's lines
		}
		specs := slices.DeleteFunc(slices.Clone(lines), func(l probe.Spec) bool { return l.Operator != name })
		if len(specs) == 0 || o.Family != "" || o.Size > 0 || o.Columns > 0 {
			if specs, err = f.specs(name, o); err != nil {
				return req, "", err
			}
		}
		s.Operators = append(s.Operators, specs...)
	}
	if len(s.Operators) == 0 {
		s.Operators = lines
	}
	for i := range s.Operators {
		s.Operators[i].Routed = ""
	}
	if len(o.Dtypes) > 0 {
		s.Dtypes = o.Dtypes
	}
	if len(o.Rows) > 0 {
		only(&s, o.Rows)
	}
	req.Schedule = s
	return req, o.Preset, nil
}

// only replaces the sweeps by the numbers of rows alone.
func only(s *probe.Schedule, rows []int) {
	sweep := s.Sweeps[0]
	sweep.Rows = rows
	s.Sweeps = []probe.Sweep{sweep}
	s.Settings = []probe.Setting{{ISA: "best", Threads: 0, Sweeps: []string{sweep.Name}}}
}

// ours reports whether name is an operator of the installed package.
func ours(name string) bool {
	source, _, qualified := strings.Cut(name, ":")
	return !qualified || source == install.Package
}

// interpreter is the Python that has the operators: that of the installation
// for the package's own, else any with torch.
func (o Options) interpreter(ctx context.Context, req *request) (string, error) {
	if slices.ContainsFunc(req.Schedule.Operators, func(s probe.Spec) bool { return ours(s.Operator) }) {
		r, err := probe.Locate(ctx, probe.Options{Prefix: o.Prefix, Python: o.Python, Runner: o.Runner, Env: o.Env})
		if err != nil {
			return "", err
		}
		req.Module = install.Package
		return r.Python.Exe, nil
	}
	py, _, err := python.Find(ctx, python.Options{Exe: o.Python, Env: o.Env, Home: o.Prefix, Runner: o.Runner})
	if err != nil {
		return "", err
	}
	if !py.HasTorch() {
		return "", report.Problemf(report.Unmet, "no Python with torch was found").WithHint("name one: --python ENV")
	}
	return py.Exe, nil
}

// existing checks what can be checked before Python starts: files that are named.
func (o Options) existing(req request) ([]probe.Spec, error) {
	specs := slices.Clone(req.Schedule.Operators)
	for i, s := range specs {
		file, function, ok := strings.Cut(s.Operator, ":")
		if !ok || !strings.HasSuffix(file, ".py") {
			continue
		}
		if function == "" {
			return nil, report.Usagef("--op %s: no function", s.Operator).WithWant("FILE.py:FUNCTION", s.Operator)
		}
		abs, err := filepath.Abs(file)
		if err != nil {
			return nil, err
		}
		specs[i].Operator = abs + ":" + function
	}
	return specs, nil
}
