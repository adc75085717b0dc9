package opcheck

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/run"
)

// reproducers writes one file for each operator and dtype that failed, and runs
// it in a process of its own: what is handed out has been seen to differ.
func (o Options) reproducers(ctx context.Context, r *Result, exe string) error {
	if o.Out == "" {
		return nil
	}
	written := map[string]bool{}
	for i := range r.Cases {
		rep := r.Cases[i].Reproducer
		if rep == nil || rep.Script == "" {
			continue
		}
		name := "reproduce-" + plain(r.Cases[i].Operator) + "-" + r.Cases[i].Dtype + ".py"
		if written[name] {
			rep.Reason = "see the first of this operator and dtype"
			continue
		}
		written[name] = true
		if err := rep.write(ctx, o, exe, filepath.Join(o.Out, name)); err != nil {
			return err
		}
	}
	return nil
}

func (rep *Reproducer) write(ctx context.Context, o Options, exe, file string) error {
	if err := os.MkdirAll(o.Out, 0o755); err != nil {
		return report.Problemf(report.Failed, "--out: %w", err)
	}
	if err := os.WriteFile(file, []byte(rep.Script), 0o644); err != nil {
		return report.Problemf(report.Failed, "--out: %w", err)
	}
	res, err := o.Runner.Run(ctx, run.Cmd{Argv: []string{exe, file}, Env: o.Env, Timeout: 10 * time.Minute})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if _, exited := errors.AsType[*run.Error](err); err != nil && !exited {
		return err
	}
	rep.File, rep.Output, rep.Confirmed = file, strings.TrimSpace(string(res.Stdout)), res.Code == 1 && len(res.Stdout) > 0
	if !rep.Confirmed {
		rep.Reason = fmt.Sprintf("in a process of its own it ended with %d: %s", res.Code, run.LastLines(string(res.Stderr), 1))
	}
	return nil
}

// plain makes a file name of an operator's: "torch:mm" is "torch.mm".
func plain(operator string) string {
	file, function, ok := strings.Cut(operator, ":")
	if !ok {
		return operator
	}
	return strings.TrimSuffix(filepath.Base(file), ".py") + "." + function
}
