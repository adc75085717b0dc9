package invar

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/invar-ops/invar/internal/build"
	"github.com/invar-ops/invar/internal/host"
	"github.com/invar-ops/invar/internal/install"
	"github.com/invar-ops/invar/internal/plan"
	"github.com/invar-ops/invar/internal/target"
)

// finals are the steps whose output is the artifact of a stage.
var finals = map[string]string{plan.Stage1: "stage1/pack", plan.Stage2: "stage2/wheel"}

// stage builds one artifact and hands it to put.
func (s Session) stage(ctx context.Context, b *build.Builder, p plan.Plan, name string, put func(context.Context, string) error) error {
	what, total := contents(p, name)
	step := s.Progress.Start(name, what, total)
	a, err := b.Make(ctx, finals[name], func() { step.Add(1) })
	if err != nil {
		step.Fail(err)
		return err
	}
	if err := put(ctx, a.Path); err != nil {
		step.Fail(err)
		return err
	}
	text := fmt.Sprintf("%s, %s, sha256 %s", a.Name, kilo(a.Size), a.SHA256[:12])
	if a.Cached {
		step.Skip(text + " (unchanged)")
		return nil
	}
	step.Done(text)
	return nil
}

// contents names what a stage compiles and counts its steps, for the bar.
func contents(p plan.Plan, stage string) (string, int64) {
	var parts []string
	var n int64
	for _, st := range p.Steps {
		if st.Stage != stage {
			continue
		}
		switch st.Kind {
		case plan.Run, plan.Pack, plan.Wheel, plan.Prove:
			n++
		default:
			continue
		}
		if level, ok := strings.CutPrefix(st.Title, "kernels "); ok && !slices.Contains(parts, level) {
			parts = append(parts, level)
		}
	}
	if len(parts) == 0 {
		return "extension:", n
	}
	return "kernels (" + strings.Join(parts, ", ") + "):", n
}

func kilo(n int64) string { return fmt.Sprintf("%d kB", (n+999)/1000) }

// bytesPerJob is what one compile of this project's sources may take. Measured
// with gcc 12: 0.4 GB for the extension with torch's headers; doubled.
const bytesPerJob = 1 << 30

// jobs is how many compiles run at a time: --jobs, else what processors and
// memory of this machine and its cgroup allow.
func (s Session) jobs(ctx context.Context, o Options, p plan.Plan) int {
	if o.Jobs > 0 {
		return o.Jobs
	}
	// Without a runner no vendor tool is asked again.
	f, err := host.Detect(ctx, host.Options{Root: "/", Env: s.Env})
	if err != nil {
		return 1
	}
	n := max(1, f.CPU.Affinity)
	if f.CPUQuota > 0 {
		n = min(n, max(1, int(f.CPUQuota)))
	}
	memory := f.Memory.TotalBytes
	if l := f.Memory.CgroupLimitBytes; l > 0 && (memory == 0 || l < memory) {
		memory = l
	}
	if memory > 0 {
		n = min(n, max(1, int(memory/jobBytes(p))))
	}
	return n
}

// jobBytes is what one compile of the plan's target may take.
func jobBytes(p plan.Plan) int64 {
	if t, err := target.Find(p.Target); err == nil && t.CUDA != nil && t.CUDA.JobBytes > bytesPerJob {
		return t.CUDA.JobBytes
	}
	return bytesPerJob
}

// activeState names the generation that stays when a build fails.
func (s Session) activeState(p plan.Plan) string {
	prefix, err := install.Open(s.Prefix)
	if err != nil {
		return "nothing was changed"
	}
	r, err := prefix.Current(p.Python.ID())
	if err != nil {
		return "nothing was installed"
	}
	return fmt.Sprintf("generation %d stays active; nothing was changed", r.Generation)
}
