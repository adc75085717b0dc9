package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/invar-ops/invar/internal/target"
	"github.com/invar-ops/invar/targets"
)

func targetsCommand() *cli.Command {
	return &cli.Command{
		Name: "targets", Usage: "what can be built",
		Description: "Lists the targets, the chips that are known and refused, and, with a name,\n" +
			"everything that is known about one target.",
		UsageText: "invar targets\ninvar targets cpu\ninvar targets --json",
		ArgsUsage: "[TARGET]",
		Flags: []cli.Flag{
			jsonFlag(),
			&cli.StringFlag{Name: "sources", Usage: "write the embedded sources of all targets to `DIR` and stop"},
		},
		Action:       runTargets,
		BashComplete: completeTargets,
	}
}

type targetsResult struct {
	Targets []target.Target `json:"targets"`
	Refused []target.Chip   `json:"refused"`
}

func runTargets(c *cli.Context) error {
	if err := argsAtMost(c, 1); err != nil {
		return err
	}
	if dir := c.String("sources"); dir != "" {
		return os.CopyFS(dir, targets.FS)
	}
	var res targetsResult
	var err error
	if name := c.Args().First(); name != "" {
		t, err := target.Find(name)
		if err != nil {
			return err
		}
		res.Targets = []target.Target{t}
	} else if res.Targets, err = target.All(); err != nil {
		return err
	} else if res.Refused, err = target.Refused(); err != nil {
		return err
	}
	switch {
	case c.Bool("json"):
		return printed(c, "targets", res, nil)
	case c.Args().Present():
		showTarget(c, res.Targets[0])
		return nil
	}
	w := c.App.Writer
	for _, t := range res.Targets {
		state := "builds"
		if !t.Builds() {
			state = "not yet: " + strings.Join(t.Missing, "; ")
		}
		fmt.Fprintf(w, "%-13s %s\n%-13s %s\n", t.Name, t.Title, "", state)
	}
	fmt.Fprintln(w, "\nknown and refused:")
	for _, r := range res.Refused {
		fmt.Fprintf(w, "%-42s %s\n", r.Product, r.Reason)
	}
	return nil
}

func showTarget(c *cli.Context, t target.Target) {
	w := c.App.Writer
	fmt.Fprintf(w, "%s: %s\n", t.Name, t.Title)
	row := func(k, v string) {
		if v != "" {
			fmt.Fprintf(w, "%-11s %s\n", k, v)
		}
	}
	row("missing", strings.Join(t.Missing, "; "))
	row("arches", strings.Join(t.Arches, ", "))
	row("contract", t.Contract)
	for _, ch := range t.Chips {
		row("chips", strings.Join(ch.SKUs, ", "))
	}
	for _, n := range t.Requires {
		row("needs", n.Name+" "+n.Want)
	}
	row("torch", t.Python.Torch)
	row("stage 1", t.Stage1.From+" -> "+t.Stage1.Package)
	row("stage 2", t.Stage2.From+" -> "+t.Stage2.Package)
	for _, o := range t.Operators {
		row("operator", o.Schema+"   ["+strings.Join(o.Keys, ", ")+"]")
	}
	for _, o := range t.Overloads {
		row("overload", o.Schema+"   ["+strings.Join(o.Keys, ", ")+"]")
	}
	for _, l := range t.Probe {
		row(fmt.Sprintf("probe %d", l.Level), l.Name)
	}
	for _, s := range t.Sources {
		row("source", s.Fact+": "+s.From)
	}
}

// completeTargets prints target names for shell completion.
func completeTargets(c *cli.Context) {
	if c.NArg() > 0 {
		return
	}
	for _, name := range targetNames() {
		fmt.Fprintln(c.App.Writer, name)
	}
}

func targetNames() []string {
	all, err := target.All()
	if err != nil {
		return nil
	}
	var names []string
	for _, t := range all {
		names = append(names, t.Name)
	}
	return names
}
