package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/invar-ops/invar/internal/invar"
	"github.com/invar-ops/invar/internal/plan"
	"github.com/invar-ops/invar/internal/report"
)

func planCommand() *cli.Command {
	return &cli.Command{
		Name: "plan", Usage: "what build would do, nothing run",
		Description: "Prints the steps of a build with their commands, or everything that this host\nlacks for it (exit code 3).",
		UsageText:   "invar plan\ninvar plan cpu --why\ninvar plan cpu --shell > build.sh",
		ArgsUsage:   "[TARGET]",
		Flags: append(append(planFlags(), releaseFlags()...),
			&cli.BoolFlag{Name: "why", Usage: "say which input makes each step run or be skipped"},
			&cli.BoolFlag{Name: "shell", Usage: "print a shell script that makes the same artifacts by hand"},
		),
		Action: func(c *cli.Context) error {
			o, err := planOptions(c)
			if err != nil {
				return err
			}
			s, err := session(c)
			if err != nil {
				return err
			}
			return showPlan(c, s, o, planView{why: c.Bool("why"), shell: c.Bool("shell")})
		},
		BashComplete: completeTargets,
	}
}

type planView struct{ why, shell bool }

func showPlan(c *cli.Context, s invar.Session, o invar.Options, v planView) error {
	p, err := s.Plan(c.Context, o)
	_, unmet := errors.AsType[*report.UnmetError](err)
	if err != nil && !unmet {
		if c.Bool("json") {
			return printed(c, "plan", nil, err)
		}
		return err
	}
	if c.Bool("json") {
		return printed(c, "plan", p, err)
	}
	if err != nil {
		return err
	}
	w := c.App.Writer
	if v.shell {
		return plan.WriteShell(w, p)
	}
	writePlan(w, s, p, v.why)
	return nil
}

func writePlan(w io.Writer, s invar.Session, p plan.Plan, why bool) {
	fmt.Fprintf(w, "target    %s, because %s\n", p.Target, p.Why)
	if r := p.Recipe; r != nil {
		fmt.Fprintf(w, "python    %s; makes %s from %s with %s\n", r.Reason(), r.Dir, r.Base.Exe, strings.Join(r.Packages, ", "))
		fmt.Fprintf(w, "          %s\n", r.Download)
	} else {
		fmt.Fprintf(w, "python    %s (%s), torch %s: %s\n", p.Python.Exe, p.Python.Version, p.Python.Torch.Version, p.Python.Why)
	}
	fmt.Fprintf(w, "compiler  %s\n", p.Compiler.Banner)
	if c := p.CUDA; c != nil {
		fmt.Fprintf(w, "toolkit   CUDA %s at %s (%s)\n", c.Version, c.Toolkit, c.From)
		if c.Shim != "" {
			fmt.Fprintf(w, "          %s; links for other builds in %s\n", c.ShimWhy, c.Shim)
		}
		fmt.Fprintf(w, "GPUs      %s (%s)\n", strings.Join(c.Arches, ", "), c.Why)
	}
	if r := p.Release; r != nil {
		fmt.Fprintf(w, "CANN      %s in %s, because %s\n", r.CANN.CANN.Version, r.CANN.CANN.Dir, r.CANN.Why)
		fmt.Fprintf(w, "lock      %s\n", r.Lock)
	}
	fmt.Fprintf(w, "prefix    %s\n", p.Prefix)
	last := s.LastPlan(p)
	for _, st := range p.Steps {
		fmt.Fprintf(w, "%-9s %s\n", st.Stage, st.ID)
		switch {
		case why:
			fmt.Fprintf(w, "          %s\n", s.Verdict(p, st, last))
		case len(st.Argv) > 0:
			fmt.Fprintf(w, "          $ %s\n", commandText(st.Argv))
		case st.Kind == plan.Env:
			for _, argv := range p.Recipe.Commands(p.Recipe.Index) {
				fmt.Fprintf(w, "          $ %s\n", commandText(argv))
			}
		case st.Kind == plan.Toolkit:
			for _, argv := range p.CUDA.Recipe.Commands() {
				fmt.Fprintf(w, "          $ %s\n", commandText(argv))
			}
		case len(st.Outputs) > 0:
			fmt.Fprintf(w, "          -> %s\n", strings.Join(st.Outputs, ", "))
		}
	}
	fmt.Fprintf(w, "fingerprint %s\n", p.Fingerprint[:12])
}
