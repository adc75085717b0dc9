package probe

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/run"
	"github.com/invar-ops/invar/internal/target"
)

// kernels is level 5: the library holds a kernel of every ISA level that the
// target builds for this architecture, and the best one that this CPU runs is
// the one in use.
func (p *prober) kernels(ctx context.Context) ([]report.Check, error) {
	if p.onNPU() {
		return p.npuKernels()
	}
	s := p.facts.Package
	var have []string
	for _, l := range s.Levels {
		have = append(have, l.Name)
	}
	want := p.target.Stage1.Levels(arch())
	flags, err := cpuFlags("/proc/cpuinfo")
	if err != nil {
		return nil, err
	}
	out := []report.Check{
		check(Kernels, "levels", slices.Equal(have, want), strings.Join(want, ", ")+" for "+arch(), strings.Join(have, ", ")),
		p.available(flags),
		p.inUse(flags),
	}
	operators := s.Operators
	if len(operators) == 0 { // a library that lists none says nothing against any
		for _, o := range p.target.Operators {
			operators = append(operators, o.Name)
		}
	}
	out = append(out, p.stage1Operators(operators))
	m, err := p.manifest(ctx)
	if err != nil {
		return nil, err
	}
	gpu, err := p.gpuKernels(ctx)
	return append(append(out, m), gpu...), err
}

// stage1Operators compares what stage 1 has with what the target builds.
func (p *prober) stage1Operators(have []string) report.Check {
	var missing []string
	for _, o := range p.target.Operators {
		if !slices.Contains(have, o.Name) {
			missing = append(missing, o.Name)
		}
	}
	return check(Kernels, "operators of stage 1", len(missing) == 0, fmt.Sprintf("the %d operators of the target", len(p.target.Operators)),
		firstNonEmpty(prefixed("without ", missing), "all of them"))
}

// available compares the library's own look at the CPU with the kernel's list
// of CPU flags, by what the compiler was told to use at each level.
func (p *prober) available(flags []string) report.Check {
	var wrong []string
	for _, l := range p.facts.Package.Levels {
		if should := runsOn(p.target.Stage1, l.Name, flags); should != l.Available {
			wrong = append(wrong, fmt.Sprintf("%s: the library says %t, /proc/cpuinfo %t", l.Name, l.Available, should))
		}
	}
	return check(Kernels, "levels of this CPU", len(wrong) == 0, "the levels whose instructions /proc/cpuinfo lists", firstNonEmpty(strings.Join(wrong, "; "), "the same"))
}

func (p *prober) inUse(flags []string) report.Check {
	const name = "level in use"
	best := ""
	for _, l := range p.facts.Package.Levels {
		if runsOn(p.target.Stage1, l.Name, flags) {
			best = l.Name
		}
	}
	got := p.facts.Package.Current
	if forced := run.Getenv(p.Env, "INVAR_CPU_ISA"); forced != "" {
		c := check(Kernels, name, got == forced, forced+", forced by INVAR_CPU_ISA", firstNonEmpty(got, "none"))
		c.Hint = hintUnless(c, "unset INVAR_CPU_ISA, or name one of the levels of this CPU; the best is "+best)
		return c
	}
	return check(Kernels, name, got == best, firstNonEmpty(best, "a level that this CPU runs"), firstNonEmpty(got, "none"))
}

// runsOn reports whether a CPU with these flags has what the objects of level
// were compiled for. The flags of gcc and of Linux have the same names: -mavx2
// is avx2. Options with a value (-march=, -mprefer-vector-width=) name no feature.
func runsOn(s target.Stage1, level string, flags []string) bool {
	for _, o := range s.For(arch()) {
		if o.Level != level {
			continue
		}
		for _, f := range o.Flags {
			feature, ok := strings.CutPrefix(f, "-m")
			if ok && !strings.Contains(feature, "=") && !slices.Contains(flags, feature) {
				return false
			}
		}
	}
	return true
}

// cpuFlags lists what the kernel says that every processor can do.
func cpuFlags(file string) ([]string, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var out []string
	for l := range strings.Lines(string(b)) {
		name, value, ok := strings.Cut(l, ":")
		if name = strings.TrimSpace(name); !ok || name != "flags" && name != "Features" {
			continue
		}
		these := strings.Fields(value)
		if out == nil {
			out = these
		}
		// Mixed cores: only what all of them have counts.
		out = slices.DeleteFunc(out, func(f string) bool { return !slices.Contains(these, f) })
	}
	return out, nil
}

// arch is the architecture as uname -m says it.
func arch() string {
	switch runtime.GOARCH {
	case "amd64":
		return "x86_64"
	case "arm64":
		return "aarch64"
	}
	return runtime.GOARCH
}

func prefixed(prefix string, names []string) string {
	if len(names) == 0 {
		return ""
	}
	return prefix + strings.Join(names, ", ")
}

func hintUnless(c report.Check, hint string) string {
	if c.Status == report.Pass {
		return ""
	}
	return hint
}
