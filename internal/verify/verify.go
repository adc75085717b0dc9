// Package verify asks a server the same things in different company and says
// whether its answers change. It joins what its sub-packages do: workload says
// what is asked, drive asks, journal keeps, judge compares.
package verify

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"time"

	"github.com/invar-ops/invar/internal/launch"
	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/run"
	"github.com/invar-ops/invar/internal/verify/drive"
	"github.com/invar-ops/invar/internal/verify/journal"
	"github.com/invar-ops/invar/internal/verify/judge"
	"github.com/invar-ops/invar/internal/verify/workload"
)

// Options say what to verify and how.
type Options struct {
	URL           string   // a running server, or
	Launch        string   // the command that starts one
	Lifetimes     int      // starts with Launch
	Control       string   // URL of a server that must vary, or
	ControlLaunch string   // the command that starts one
	RankURLs      []string // one server a data-parallel rank
	Model         string
	Key           string
	Roots         *x509.CertPool
	Timeout       time.Duration // of one request
	Patience      time.Duration // for a start
	Concurrency   int           // requests at once; 0 is no limit
	Preset        string
	Workloads     []string // instead of a preset
	Count         int      // prompts of each workload; 0 is what the data say
	Strict        bool
	State         string // folder of a journal that a later call goes on with
	Logs          string // folder of the logs of started servers
	Env           []string
	Runner        run.Runner
	Progress      report.Progress
	Transport     http.RoundTripper // instead of the network, for tests
	// starts stands for starts of a server without a process, for tests.
	starts func(lifetime int) http.RoundTripper
}

// Server verifies a server. The result is nil when nothing could be asked; else
// the error is the verdict's, nil for "invariant".
func Server(ctx context.Context, o Options) (*judge.Result, error) {
	ws, err := workload.Select(o.Preset, o.Workloads, o.Count)
	if err != nil {
		return nil, err
	}
	v := &verification{Options: o, nonce: nonce()}
	if ws = v.askable(ws); len(ws) == 0 {
		return nil, report.Usagef("the first requests after a start are known only of a server that invar starts").
			WithHint("--launch COMMAND instead of --url, or another --workload")
	}
	v.workloads = ws
	v.facts = judge.Facts{Workloads: ws, Strict: o.Strict, RankURLs: len(o.RankURLs), Fresh: v.fresh()}
	v.facts.Server = judge.Server{URL: o.URL, Command: o.Launch, Model: o.Model}
	defer v.close()
	err = v.all(ctx)
	if v.journal == nil {
		return nil, err
	}
	return v.conclude(err)
}

// A verification is one under way.
type verification struct {
	Options
	workloads []workload.Workload
	nonce     string
	facts     judge.Facts
	journal   *journal.Journal
	logs      []string
}

// controlLog is the name of the control's log.
const controlLog = "control.log"

// fresh reports whether servers are started for this verification.
func (v *verification) fresh() bool { return v.Launch != "" || v.starts != nil }

// askable leaves out what a server that was running already cannot be asked.
func (v *verification) askable(ws []workload.Workload) []workload.Workload {
	if v.fresh() {
		return ws
	}
	return slices.DeleteFunc(ws, workload.Workload.Fresh)
}

func (v *verification) all(ctx context.Context) error {
	lifetimes := 1
	if v.fresh() {
		lifetimes = max(v.Lifetimes, 1)
	}
	for l := 1; l <= lifetimes; l++ {
		if v.starts != nil {
			v.Transport = v.starts(l)
		}
		err := v.on(ctx, v.URL, v.Launch, fmt.Sprintf("server-%d.log", l), func(c *connection) error {
			return v.lifetime(ctx, c, l)
		})
		if err != nil {
			return err
		}
		v.facts.Server.Lifetimes = l
	}
	if v.Control == "" && v.ControlLaunch == "" {
		return nil
	}
	v.facts.Control = v.Control + v.ControlLaunch
	return v.on(ctx, v.Control, v.ControlLaunch, controlLog, func(c *connection) error { return v.control(ctx, c) })
}

// on calls f with a connection to the server at url, or to one that command
// starts and that is stopped afterwards.
func (v *verification) on(ctx context.Context, url, command, logName string, f func(*connection) error) error {
	if command != "" {
		c, err := launch.Parse(command)
		if err != nil {
			return err
		}
		log := filepath.Join(v.Logs, logName)
		step := v.Progress.Start("start", command, 0)
		s, err := launch.Start(ctx, v.Runner, c, v.Env, log, v.Patience)
		if err != nil {
			step.Fail(err)
			return err
		}
		step.Done("")
		v.logs = append(v.logs, log)
		defer s.Stop()
		err = v.with(ctx, c.URL, f)
		if all, rerr := s.Routing(); rerr == nil {
			v.routing(all, logName == controlLog)
		}
		v.facts.LogPreemptions += s.Preemptions()
		if why := s.Cause(); why != nil && errors.Is(err, drive.ErrDied) {
			err = fmt.Errorf("%w: %s (%s)", err, why.Text, why.Hint)
		}
		return err
	}
	return v.with(ctx, url, f)
}

// routing keeps what the workers of a server said of their operators.
func (v *verification) routing(all []launch.Routing, control bool) {
	if control {
		v.facts.Plain = len(all) == 0
		return
	}
	for _, r := range all {
		v.facts.Routing = append(v.facts.Routing, r.Text())
	}
	if len(all) > 0 { // none at all is refused at the start, where they were asked for
		v.facts.Unrouted = max(v.facts.Unrouted, len(v.facts.Server.Ranks)-len(all))
	}
}

func (v *verification) with(ctx context.Context, url string, f func(*connection) error) error {
	c, err := v.connect(ctx, url)
	if err != nil {
		return err
	}
	defer c.client.Close()
	return f(c)
}
