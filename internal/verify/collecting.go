package verify

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/invar-ops/invar/internal/openai"
	"github.com/invar-ops/invar/internal/verify/answer"
	"github.com/invar-ops/invar/internal/verify/journal"
)

// collect reads what the script wrote into the journal.
func (v *verification) collect(file string, runs []askedRun) error {
	f, err := os.Open(file) //nolint:gosec // in a folder of our own
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	by := map[string]*askedRun{}
	for i := range runs {
		by[runs[i].Run] = &runs[i]
	}
	sc := bufio.NewReaderSize(f, 1<<20)
	for {
		b, err := sc.ReadBytes('\n')
		if err != nil {
			return nil //nolint:nilerr // a cut last line is the trace of a crash, which is reported
		}
		if err := v.line(b, by); err != nil {
			return err
		}
	}
}

// line takes one line of the script: the version, an answer, or the end of a run.
func (v *verification) line(b []byte, by map[string]*askedRun) error {
	var l struct {
		Version  string          `json:"version"`
		Run      string          `json:"run"`
		I        int             `json:"i"`
		Choice   json.RawMessage `json:"choice"`
		Counters *struct {
			journal.Observed
		} `json:"counters"`
	}
	if err := json.Unmarshal(openai.Repair(b), &l); err != nil {
		return fmt.Errorf("answer of the script: %w", err)
	}
	if l.Version != "" {
		v.facts.Server.Version = l.Version
		return nil
	}
	r, ok := by[l.Run]
	if !ok {
		return fmt.Errorf("answer of the script: unknown run %q", l.Run)
	}
	if r.kept == nil {
		r.kept, _ = v.journal.Start(r.key)
		r.kept.Arrangement, r.kept.Refs = r.a, make([]journal.Ref, r.w.Prompts.Count)
	}
	jr := r.kept
	if l.Counters != nil {
		o := jr.Observed
		jr.Observed = l.Counters.Observed
		jr.Observed.Metrics, jr.Observed.HasSteps = true, true
		jr.Observed.Sent, jr.Observed.Completion = o.Sent, o.Completion
		jr.Complete, jr.Done = true, time.Now().UTC()
		return v.journal.End(jr)
	}
	return v.offlineAnswer(*r, l.I, l.Choice)
}

func (v *verification) offlineAnswer(r askedRun, i int, raw json.RawMessage) error {
	var ch openai.Choice
	if err := json.Unmarshal(raw, &ch); err != nil {
		return fmt.Errorf("answer of the script: %w", err)
	}
	jr := r.kept
	jr.Observed.Sent++
	jr.Observed.Completion += len(ch.TokenIDs)
	s := r.w.Sampling
	a, err := answer.From(ch, s.Logprobs > 0, s.PromptLogprobs > 0)
	if err != nil {
		jr.Fail(fmt.Sprintf("%s, request %d: %v", r.Run, i, err))
		return nil
	}
	if i < 0 {
		return nil
	}
	jr.Note(a)
	return v.journal.Put(jr.Key, i, a, max(s.Logprobs, s.PromptLogprobs), nil)
}
