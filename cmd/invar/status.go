package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/invar-ops/invar/internal/install"
	"github.com/invar-ops/invar/internal/report"
)

func statusCommand() *cli.Command {
	return &cli.Command{
		Name: "status", Usage: "what is installed where, and is it whole",
		Description: "Reads files only: no Python is started and nothing is changed. Compares every\n" +
			"installed file with its receipt. Exit code 5 when an installation is not whole.",
		UsageText: "invar status\ninvar status --python .venv\ninvar status --json",
		Flags:     []cli.Flag{prefixFlag(), pythonFlag(), jsonFlag()},
		Action:    runStatus,
	}
}

func runStatus(c *cli.Context) error {
	p, s, err := home(c)
	if err != nil {
		return err
	}
	st, err := p.Status(c.Context, s.Env)
	if err == nil && c.String("python") != "" {
		err = only(c, p, &st)
	}
	for _, e := range st.Envs {
		for i := range e.Health.Faults {
			e.Health.Faults[i].Hint = again(c, e.Health.Faults[i].Hint)
		}
	}
	if err == nil {
		err = verdict(st)
	}
	if c.Bool("json") {
		return printed(c, "status", st, err)
	}
	showStatus(c.App.Writer, st)
	return err
}

// only keeps the environment that --python means.
func only(c *cli.Context, p *install.Prefix, st *install.Status) error {
	_, s, err := home(c)
	if err != nil {
		return err
	}
	id, err := which(c, p, s)
	if err != nil {
		return err
	}
	all := st.Envs
	st.Envs = []install.EnvStatus{}
	for _, e := range all {
		if e.ID == id {
			st.Envs = append(st.Envs, e)
		}
	}
	return nil
}

// verdict is an error when something that is installed is not whole.
func verdict(st install.Status) error {
	for _, e := range st.Envs {
		if len(e.Health.Faults) == 0 {
			continue
		}
		f := e.Health.Faults[0]
		return report.Problemf(report.CheckFailed, "the installation for %s is not whole: %s %s", or(e.Python.Exe, e.Python.Purelib), f.Path, f.Kind).
			WithWant(f.Want, f.Got).WithHint("%s", f.Hint)
	}
	return nil
}

func showStatus(w io.Writer, st install.Status) {
	row := func(k, format string, args ...any) { fmt.Fprintf(w, "%-11s %s\n", k, fmt.Sprintf(format, args...)) }
	row("prefix", "%s", st.Prefix)
	if len(st.Envs) == 0 {
		row("installed", "nothing")
	}
	for _, e := range st.Envs {
		fmt.Fprintln(w)
		python := or(e.Python.Exe, e.Python.Purelib)
		if e.Python.Version != "" {
			python += ", " + e.Python.Version
		}
		if e.Python.Torch != "" {
			python += ", torch " + e.Python.Torch
		}
		row("python", "%s", python)
		showInstalled(row, e)
		for _, m := range e.Moved {
			if m.Kind == "aside" {
				row("aside", "%s, from %s", m.What, m.From)
			}
		}
	}
	fmt.Fprintln(w)
	row("store", "%d files, %s", st.Store.Objects, size(st.Store.Bytes))
}

func showInstalled(row func(string, string, ...any), e install.EnvStatus) {
	var older []string
	for _, g := range e.Generations {
		if g.State != "current" {
			older = append(older, fmt.Sprintf("%d (%s)", g.Number, g.State))
		}
	}
	if e.Current == 0 {
		row("installed", "nothing")
	} else {
		state := "whole"
		if !e.Health.OK {
			state = fmt.Sprintf("NOT whole, %d faults", len(e.Health.Faults))
			if len(e.Health.Faults) == 1 {
				state = "NOT whole, 1 fault"
			}
		}
		row("installed", "%s, generation %d, contract %s, %s: %s", e.Target, e.Current, or(e.Contract, "none"), ago(time.Since(e.Installed)), state)
		row("probed", "%s", probed(e))
		row("stage 1", "%s, sha256 %.12s", e.RunPackage.Name, e.RunPackage.SHA256)
		row("stage 2", "%s, sha256 %.12s", e.Wheel.Name, e.Wheel.SHA256)
		row("hook", "%s", or(e.Health.Hook, "unknown"))
	}
	if len(older) > 0 {
		row("also there", "%s", strings.Join(older, ", "))
	}
	for _, f := range e.Health.Faults {
		row("fault", "%s", f)
		if f.Hint != "" {
			row("  try", "%s", f.Hint)
		}
	}
	for _, x := range e.Health.Extra {
		row("not ours", "%s", x)
	}
}

// probed says how far the generation was proved, as its build saved it.
func probed(e install.EnvStatus) string {
	var saved struct {
		At     time.Time `json:"at"`
		Failed bool      `json:"failed"`
		Result struct {
			Proved int `json:"proved"`
		} `json:"result"`
	}
	switch err := json.Unmarshal(e.Probe, &saved); {
	case err != nil:
		return "not yet (invar probe)"
	case saved.Failed:
		return "failed, " + ago(time.Since(saved.At))
	}
	return fmt.Sprintf("levels 1 to %d, %s", saved.Result.Proved, ago(time.Since(saved.At)))
}
