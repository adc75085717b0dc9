package verify

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"

	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/verify/drive"
	"github.com/invar-ops/invar/internal/verify/judge"
	"github.com/invar-ops/invar/internal/verify/workload"
)

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
