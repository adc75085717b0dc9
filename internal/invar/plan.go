package invar

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/invar-ops/invar/internal/host"
	"github.com/invar-ops/invar/internal/plan"
	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/target"
)

// Options are the user's choices for plan and build.
type Options struct {
	Target     string // empty or "auto" detects it
	SoC        string // override of detection
	Python     string
	Torch      string // requirement specifier of the environment that invar makes
	TorchIndex string
	Wheelhouse string
	Offline    bool
	Jobs       int // parallel compiles; 0 lets memory and cores decide
	Replace    bool
	TakeOver   bool
	NoWait     bool
	Force      bool // build and install although nothing changed
	Release    ReleaseOptions
	CUDA       CUDAOptions
}

// Plan says what Build would do, and runs nothing that changes the host.
func (s Session) Plan(ctx context.Context, o Options) (plan.Plan, error) {
	s = s.asking()
	t, why, err := s.resolve(ctx, o)
	if err != nil {
		return plan.Plan{}, err
	}
	f, err := s.gather(ctx, t, hostArch(), o)
	if err != nil {
		return plan.Plan{}, err
	}
	return plan.Make(t, f, plan.Options{
		Prefix: s.Prefix, Why: why, Version: s.Version, Torch: o.Torch, TorchIndex: o.TorchIndex,
		Offline: o.Offline, Wheelhouse: o.Wheelhouse,
	})
}

// resolve finds the target that was named or, for "auto", detected. Unknown
// stays unknown: there is no default.
func (s Session) resolve(ctx context.Context, o Options) (target.Target, string, error) {
	if o.Target != "" && o.Target != "auto" {
		t, err := target.Find(o.Target)
		return t, "it was named", err
	}
	facts, err := s.detect(ctx, o.SoC)
	if err != nil {
		return target.Target{}, "", err
	}
	v := host.Judge(facts)
	if v.Target == "" || v.ExitCode() != report.Done {
		return target.Target{}, "", report.Problemf(report.Unmet, "no target can be chosen for this host: %s", v.Reason).
			WithWant("one kind of accelerator, or every source saying that there is none", v.State).
			WithHint("%s", firstOf(v.Hint, "invar detect --evidence; then name the target: invar build TARGET"))
	}
	if v.State == host.Known && !v.Health.Usable {
		return target.Target{}, "", report.Problemf(report.Unmet, "%s was found and cannot be used: %s",
			firstOf(v.SoC, v.Target), strings.Join(v.Health.Notes, "; ")).
			WithWant("a device that its driver serves", "a fault").
			WithHint("%s", firstOf(v.Hint, "repair the driver, or name the target: invar build "+v.Target))
	}
	t, err := target.Find(v.Target)
	return t, v.Reason, err
}

// hostArch is the architecture in the spelling of uname -m and of wheel tags.
func hostArch() string {
	switch runtime.GOARCH {
	case "amd64":
		return "x86_64"
	case "arm64":
		return "aarch64"
	}
	return runtime.GOARCH
}

func firstOf(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}

// LastPlan is the plan of the last finished build for this Python and target, or nil.
func (s Session) LastPlan(p plan.Plan) *plan.Plan {
	b, err := os.ReadFile(s.planFile(p))
	if err != nil {
		return nil
	}
	var last plan.Plan
	if json.Unmarshal(b, &last) != nil {
		return nil
	}
	return &last
}

func (s Session) planFile(p plan.Plan) string {
	return filepath.Join(s.Prefix, "env", p.Python.ID(), "plan-"+p.Target+".json")
}

// savePlan is best effort: without it, plan --why knows less.
func (s Session) savePlan(p plan.Plan) {
	b, err := json.Marshal(p)
	if err != nil {
		return
	}
	file := s.planFile(p)
	if os.WriteFile(file+".new", b, 0o644) == nil {
		_ = os.Rename(file+".new", file)
	}
}
