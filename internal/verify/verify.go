// Package verify asks a server the same things in different company and says
// whether its answers change. It joins what its sub-packages do: workload says
// what is asked, drive asks, journal keeps, judge compares.
package verify

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
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

// lifetime runs everything once on one start of the server.
func (v *verification) lifetime(ctx context.Context, c *connection, l int) error {
	if v.journal == nil {
		if err := v.open(c); err != nil {
			return err
		}
	}
	d := v.driver(c)
	for _, w := range v.workloads {
		if err := v.runs(ctx, d, w, journal.Subject, l, func(a workload.Arrangement) bool { return a.First }); err != nil {
			return err
		}
	}
	if err := d.Prime(ctx, v.workloads[0], journal.Subject, l); err != nil {
		return err
	}
	for _, w := range v.workloads {
		if err := v.workload(ctx, d, w, journal.Subject, l); err != nil {
			return err
		}
	}
	return nil
}

// workload makes the runs of w, and those of every rank where there are ranks.
func (v *verification) workload(ctx context.Context, d *drive.Driver, w workload.Workload, role string, l int) error {
	step := v.Progress.Start("verify", fmt.Sprintf("%s (%s), start %d", w.Name, w.About, l), int64(len(w.Runs)))
	err := v.runs(ctx, d, w, role, l, func(workload.Arrangement) bool {
		step.Add(1)
		return true
	})
	if err != nil {
		step.Fail(err)
		return err
	}
	step.Done("")
	return nil
}

// runs makes the runs of w that want says; one that was made is not made again.
func (v *verification) runs(ctx context.Context, d *drive.Driver, w workload.Workload, role string, l int, want func(workload.Arrangement) bool) error {
	for _, k := range v.ranks(w) {
		for _, a := range w.Runs {
			if !want(a) {
				continue
			}
			for n := range a.Repeat {
				_, err := d.Run(ctx, w, a, journal.Key{Role: role, Lifetime: l, Workload: w.Name, Rank: k, Run: a.Name, Repeat: n})
				if err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// ranks are the ranks to which w is addressed. Which rank answers what leaves
// the choice to the server is not known, so that nothing is the first of one.
func (v *verification) ranks(w workload.Workload) []int {
	out := []int{journal.NoRank}
	n := max(len(v.facts.Server.Ranks), len(v.RankURLs))
	if n < 2 || !w.Ranks {
		return out
	}
	if w.Fresh() {
		out = nil
	}
	for k := range n {
		out = append(out, k)
	}
	return out
}

// control sends the same until a difference shows: one is enough.
func (v *verification) control(ctx context.Context, c *connection) error {
	d := v.driver(c)
	if err := d.Prime(ctx, v.workloads[0], journal.Control, 1); err != nil {
		return err
	}
	for _, w := range v.workloads {
		if w.Fresh() {
			continue // tells nothing of batches
		}
		if err := v.workload(ctx, d, w, journal.Control, 1); err != nil {
			return fmt.Errorf("control: %w", err)
		}
		if judge.Varies(v.journal.Runs(), w.Name) {
			return nil
		}
	}
	return nil
}

func (v *verification) driver(c *connection) *drive.Driver {
	return &drive.Driver{
		Client: c.client, Ranks: c.ranks, Engine: c.engine, Model: c.model,
		Limit: v.Concurrency, Nonce: v.nonce, Journal: v.journal,
	}
}

// open opens the journal, which has to be about the same thing.
func (v *verification) open(c *connection) error {
	h := journal.Head{Format: 1, Server: c.client.Base, Model: c.model, Version: c.version, Digest: digest(v.workloads)}
	for _, w := range v.workloads {
		h.Workloads = append(h.Workloads, w.Name)
	}
	j, err := journal.Open(v.State, h)
	if f, ok := errors.AsType[*journal.ForeignError](err); ok {
		return report.Usagef("--state: %w", f).WithHint("give another folder, or the same server, preset and workloads")
	}
	if err != nil {
		return fmt.Errorf("state: %w", err)
	}
	v.journal = j
	v.facts.Server = judge.Server{
		URL: c.client.Base, Command: v.Launch, Model: c.model, Engine: c.engine.Name, Version: c.version,
		Ranks: c.labels, CacheOn: c.cache,
	}
	return nil
}

// conclude judges what there is, whatever ended the verification.
func (v *verification) conclude(err error) (*judge.Result, error) {
	p, refused := errors.AsType[*report.Problem](err)
	switch {
	case err == nil:
	case errors.Is(err, drive.ErrDied):
		v.facts.Ended = judge.Died
	case errors.Is(err, drive.ErrSlow):
		v.facts.Ended = judge.Slow
	case errors.Is(err, context.Canceled), !refused:
		v.facts.Ended = judge.Stopped
	default:
		v.facts.Ended = judge.Refused
	}
	if err != nil {
		v.facts.Because = err.Error() + "."
		v.facts.Server.Lifetimes = max(v.facts.Server.Lifetimes, 1)
	}
	res, jerr := judge.Judge(v.facts, v.journal.Runs(), v.journal)
	if jerr != nil {
		return nil, jerr
	}
	res.Logs = v.logs
	if v.facts.Ended == judge.Refused || v.facts.Ended == judge.Stopped {
		if v.State == "" {
			return &res, err
		}
		if p == nil {
			p = &report.Problem{Err: err}
			err = p
		}
		p.State = "the answers so far are in " + v.State + ", the same command goes on there"
		return &res, err
	}
	return &res, problem(res)
}

// problem is the error that belongs to a verdict.
func problem(res judge.Result) error {
	code := res.Verdict.Code()
	switch {
	case code == report.Done:
		return nil
	case res.Verdict.Ended == judge.Died:
		return report.Problemf(code, "the server died during the verification; verdict about the part that ran: %s", res.Verdict.Word).
			WithHint("see the server's log; what ran is in the report")
	case res.Verdict.Word == judge.Variant:
		return report.Problemf(code, "answers are not invariant").WithHint("invar explain FILE, with the file that --json or --html wrote")
	}
	p := report.Problemf(code, "inconclusive: %s", res.Verdict.Reasons[0].Text)
	p.Rule = res.Verdict.Reasons[0].ID
	return p.WithHint("%s", res.Verdict.Reasons[0].Hint)
}

func (v *verification) close() {
	if v.journal != nil {
		_ = v.journal.Close()
	}
}

// nonce keeps the prefix cache of one verification apart from that of the next.
func nonce() string {
	var b [6]byte
	_, _ = rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

func digest(ws []workload.Workload) string {
	b, err := json.Marshal(ws)
	if err != nil {
		return ""
	}
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:8])
}
