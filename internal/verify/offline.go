package verify

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/run"
	"github.com/invar-ops/invar/internal/verify/drive"
	"github.com/invar-ops/invar/internal/verify/journal"
	"github.com/invar-ops/invar/internal/verify/judge"
	"github.com/invar-ops/invar/internal/verify/workload"
	"github.com/invar-ops/invar/scripts"
)

// OfflineOptions say what to verify through LLM.generate, beside Options.
type OfflineOptions struct {
	Options
	Python    string         // interpreter with vLLM
	Folder    string         // of the model
	Arguments map[string]any // of LLM(...)
	Control   []string       // KEY=VALUE that switch invariance off; nil makes no control
}

// Offline makes the runs that a program without a server can make: alone and
// in one call of generate. Everything else is as in Server.
func Offline(ctx context.Context, o OfflineOptions) (*judge.Result, error) {
	ws, err := workload.Select(o.Preset, o.Workloads, o.Count)
	if err != nil {
		return nil, err
	}
	if ws = offlineOnly(ws); len(ws) == 0 {
		return nil, report.Usagef("none of these workloads can be made in calls of generate: requests cannot arrive one after the other there").
			WithHint("invar verify offline --dry-run lists the workloads of a preset")
	}
	v := &verification{Options: o.Options, workloads: ws, nonce: nonce()}
	v.facts = judge.Facts{Workloads: ws, Strict: o.Strict, Fresh: true}
	v.facts.Server = judge.Server{Command: "LLM.generate", Model: o.Folder, Engine: "vllm"}
	defer v.close()
	h := journal.Head{Format: 1, Server: "LLM.generate", Model: o.Folder, Digest: digest(ws)}
	if v.journal, err = journal.Open("", h); err != nil {
		return nil, err
	}
	err = v.offline(ctx, o)
	if err != nil && len(v.journal.Runs()) == 0 {
		return nil, err
	}
	return v.conclude(err)
}

func (v *verification) offline(ctx context.Context, o OfflineOptions) error {
	dir, err := os.MkdirTemp("", "invar-offline-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := scripts.Unpack(dir); err != nil {
		return err
	}
	for l := 1; l <= max(o.Lifetimes, 1); l++ {
		if err := v.process(ctx, o, dir, journal.Subject, l, o.Env); err != nil {
			return err
		}
		v.facts.Server.Lifetimes = l
	}
	if o.Control == nil {
		return nil
	}
	v.facts.Control = "LLM.generate with " + strings.Join(o.Control, " ")
	env := o.Env
	for _, kv := range o.Control {
		k, val, _ := strings.Cut(kv, "=")
		env = run.Setenv(env, k, val)
	}
	return v.process(ctx, o, dir, journal.Control, 1, env)
}

// An asked run is what the script is told of one.
type askedRun struct {
	Run      string          `json:"run"`
	Sampling map[string]any  `json:"sampling"`
	Fill     [][]askedPrompt `json:"fill"`
	Groups   [][]askedPrompt `json:"groups"` // each one call of generate
	key      journal.Key
	w        workload.Workload
	a        workload.Arrangement
	kept     *journal.Run // from its first line on
}

type askedPrompt struct {
	I    int    `json:"i"`
	Text string `json:"text"`
	Salt string `json:"salt"`
}

// process starts one engine and has it make all runs.
func (v *verification) process(ctx context.Context, o OfflineOptions, dir, role string, l int, env []string) error {
	runs := v.asked(role, l)
	if o.Arguments == nil {
		o.Arguments = map[string]any{} // null is no mapping in Python
	}
	in, err := json.Marshal(map[string]any{"model": o.Folder, "arguments": o.Arguments, "runs": runs})
	if err != nil {
		return err
	}
	name := fmt.Sprintf("%s-%d", role, l)
	out, log := filepath.Join(dir, name+".jsonl"), filepath.Join(v.Logs, "offline-"+name+".log")
	_ = os.Remove(log)
	v.logs = append(v.logs, log)
	step := v.Progress.Start("verify", fmt.Sprintf("%s through LLM.generate, start %d, %d runs", role, l, len(runs)), 0)
	_, rerr := v.Runner.Run(ctx, run.Cmd{
		Argv: []string{o.Python, filepath.Join(dir, scripts.Offline), out}, Env: env, Log: log, Stdin: bytes.NewReader(in),
	})
	if err := v.collect(out, runs); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if rerr != nil {
		step.Fail(rerr)
		return v.offlineProblem(rerr, log)
	}
	step.Done("")
	return nil
}

// offlineProblem tells a program that died under the runs from one that never came to them.
func (v *verification) offlineProblem(err error, log string) error {
	for _, r := range v.journal.Runs() {
		if r.Answers() > 0 {
			return fmt.Errorf("%w: %w", drive.ErrDied, err)
		}
	}
	p := report.Problemf(report.Failed, "the engine did not start: %w", err).WithHint("invar explain %s", log)
	p.Log = log
	if e, ok := errors.AsType[*run.Error](err); ok {
		p.Tail = e.Tail(8)
	}
	return p
}

// asked lists the runs: what is about the first requests, a priming run, the rest.
func (v *verification) asked(role string, l int) []askedRun {
	var early, later []askedRun
	for _, w := range v.workloads {
		if role == journal.Control && w.Fresh() {
			continue // tells nothing of batches
		}
		for _, a := range w.Runs {
			for n := range a.Repeat {
				r := v.askedRun(w, a, journal.Key{Role: role, Lifetime: l, Workload: w.Name, Rank: journal.NoRank, Run: a.Name, Repeat: n})
				if a.First {
					early = append(early, r)
				} else {
					later = append(later, r)
				}
			}
		}
	}
	first := v.workloads[0]
	first.Prompts.Count = min(first.Prompts.Count, 4)
	prime := workload.Arrangement{Name: drive.Priming, Mode: workload.Alone, Repeat: 1, Cache: workload.Apart}
	early = append(early, v.askedRun(first, prime, journal.Key{Role: role, Lifetime: l, Workload: first.Name, Rank: journal.NoRank, Run: drive.Priming}))
	return append(early, later...)
}

func (v *verification) askedRun(w workload.Workload, a workload.Arrangement, k journal.Key) askedRun {
	s := w.Sampling
	r := askedRun{Run: k.String(), key: k, w: w, a: a, Fill: [][]askedPrompt{}, Sampling: map[string]any{
		"max_tokens": s.MaxTokens, "temperature": s.Temperature, "top_p": s.TopP, "seed": s.Seed, "logprobs": s.Logprobs, "ignore_eos": s.IgnoreEOS,
	}}
	if s.PromptLogprobs > 0 {
		r.Sampling["prompt_logprobs"] = s.PromptLogprobs
	}
	base, own := drive.Salts(v.nonce, k)
	ask := func(i int, text string) askedPrompt {
		return askedPrompt{i, text, a.Salt(base, own, strconv.Itoa(i))}
	}
	var writers, all []askedPrompt
	if a.Cache == workload.FillAlone || a.Cache == workload.FillAtOnce {
		for _, t := range w.Writers(4) {
			writers = append(writers, ask(workload.Filler, t))
		}
	}
	for i, t := range w.Mixed(a) {
		all = append(all, ask(i, t))
	}
	switch a.Cache {
	case workload.FillAlone:
		r.Fill = apart(writers)
	case workload.FillAtOnce:
		for _, t := range w.Fillers(a).All() {
			writers = append(writers, ask(workload.Filler, t))
		}
		r.Fill = [][]askedPrompt{writers}
	}
	if r.Groups = [][]askedPrompt{all}; a.Mode == workload.Alone {
		r.Groups = apart(all)
	}
	return r
}

func apart(all []askedPrompt) [][]askedPrompt {
	out := make([][]askedPrompt, len(all))
	for i, p := range all {
		out[i] = []askedPrompt{p}
	}
	return out
}

// offlineOnly drops the arrangements that need arrivals over time. A list and
// requests at once are the same call of generate: one of them stays.
func offlineOnly(ws []workload.Workload) []workload.Workload {
	var out []workload.Workload
	for _, w := range ws {
		var keep []workload.Arrangement
		for _, a := range w.Runs {
			if a.Mode == workload.Staggered || a.Mode == workload.Arrival {
				continue
			}
			if a.Mode == workload.List {
				a.Name, a.Mode = "one call", workload.Concurrent
			}
			a.Stream = false
			keep = append(keep, a)
		}
		if w.Runs = keep; len(keep) > 1 || len(keep) == 1 && keep[0].Repeat > 1 {
			out = append(out, w)
		}
	}
	return out
}
