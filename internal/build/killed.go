package build

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/invar-ops/invar/internal/plan"
	"github.com/invar-ops/invar/internal/run"
)

// killedRE is how drivers of compilers report that the kernel killed the
// program that did the work: nvcc, gcc, clang, and shells.
var killedRE = regexp.MustCompile(`died due to signal 9|Killed signal terminated program|(?m)^.*\bKilled\s*$|failed due to signal.*Killed|due to signal 9|unable to execute command: Killed`)

// killed reports whether a compile ended because the kernel took it down, most
// often for want of memory: the process itself, or one that it started.
func killed(err error) bool {
	re, ok := errors.AsType[*run.Error](err)
	if !ok || contextEnded(err) {
		return false
	}
	r := re.Result
	if r.Signal == 9 || r.Code == 128+9 {
		return true
	}
	return r.Code != 0 && killedRE.Match(bytes.TrimSpace(append(bytes.Clone(r.Stderr), r.Stdout...)))
}

// narrowing runs a process and, while the kernel kills it, runs it again with
// half as many beside it, down to alone. Alone and killed is final. What was
// narrowed once stays so: the next compile needs as much.
func (b *Builder) narrowing(ctx context.Context, s plan.Step) error {
	for {
		weight := b.weight.Load()
		err := b.slot(ctx, s, weight, func() error { return b.process(ctx, s) })
		if err == nil || !killed(err) || weight >= int64(b.jobs) {
			return err
		}
		wider := min(weight*2, int64(b.jobs))
		b.weight.CompareAndSwap(weight, wider)
		b.note(fmt.Sprintf("%s was killed, most often because memory ran out; trying again with %d at a time",
			strings.TrimPrefix(s.ID, "stage1/"), int64(b.jobs)/max(1, b.weight.Load())))
	}
}
