package probe

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/run"
)

// wiring is level 4: the process has the installed stage 1 mapped and no other,
// and both stages were made for each other.
func (p *prober) wiring(context.Context) ([]report.Check, error) {
	if p.onNPU() {
		return p.npuWiring(), nil
	}
	s := p.facts.Package
	if s.Error != "" {
		return []report.Check{check(Wiring, "stages", false, "answers from both stages", s.Error)}, nil
	}
	return append([]report.Check{
		p.mappedStage1(),
		check(Wiring, "ABI", s.ABI == s.ExpectedABI, fmt.Sprintf("ABI %d, which stage 2 was compiled for", s.ExpectedABI), fmt.Sprintf("ABI %d", s.ABI)),
		check(Wiring, "contract", s.Contract == s.ExpectedContract && (p.receipt.Contract == "" || s.Contract == p.receipt.Contract),
			fmt.Sprintf("%s in stage 2 and %s in the receipt", s.ExpectedContract, firstNonEmpty(p.receipt.Contract, "none")), s.Contract),
		p.versions(),
	}, p.gpuWiring()...), nil
}

// stage1 is where the receipt put the library of the run package.
func (p *prober) stage1() string {
	return filepath.Join(p.receipt.Ops(), "lib", p.target.Stage1.Library)
}

func (p *prober) mappedStage1() report.Check {
	c := p.mapped("stage 1 in use", p.stage1())
	if v := run.Getenv(p.Env, "INVAR_CPU_LIBRARY"); v != "" && c.Status != report.Pass {
		c.Hint = "INVAR_CPU_LIBRARY=" + v + " overrides the installation: unset it"
	}
	return c
}

// mapped wants the library at that path in the process, and no other of its name.
func (p *prober) mapped(name, want string) report.Check {
	var others []string
	found := false
	for _, m := range p.facts.Mapped {
		if stem(filepath.Base(m.Path)) != stem(filepath.Base(want)) {
			continue
		}
		if sameFile(m.Path, want) && !m.Deleted {
			found = true
			continue
		}
		text := m.Path
		if m.Deleted {
			text += " (replaced or deleted since)"
		}
		others = append(others, text)
	}
	got := strings.Join(others, ", ")
	if found && len(others) == 0 {
		return check(Wiring, name, true, want, "that file, by /proc/self/maps")
	}
	if found {
		got = "that file and " + got
	}
	c := check(Wiring, name, false, want+" and no other", firstNonEmpty(got, "no "+stem(filepath.Base(want))+" is mapped"))
	c.Hint = "invar build installs both stages together"
	return c
}

// versions compares what both stages say in the process with the artifacts that
// the receipt names: a difference is a mixture of two builds.
func (p *prober) versions() report.Check {
	s := p.facts.Package
	r := p.receipt
	ok := strings.Contains(r.RunPackage.Name, "-"+s.Stage1Version+"-") && strings.Contains(r.Wheel.Name, "-"+s.Version+"-")
	return check(Wiring, "versions", ok, r.RunPackage.Name+" and "+r.Wheel.Name,
		fmt.Sprintf("stage 1 of version %s, stage 2 of version %s", s.Stage1Version, s.Version))
}
