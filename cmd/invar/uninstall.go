package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"github.com/invar-ops/invar/internal/install"
)

// made are the names below a prefix that other parts of invar make: scratch
// folders of builds, caches, logs where there is no home, its own Python.
var made = []string{"work", "cache", "log", "python", "invar.lock"}

func uninstallCommand() *cli.Command {
	return &cli.Command{
		Name: "uninstall", Usage: "remove what invar installed, and nothing else",
		Description: "Removes the generations and the hook of one Python and brings back what was moved\n" +
			"aside; with the last Python the whole prefix goes, an environment that invar made\n" +
			"included. Files that invar did not make stay and are listed.",
		UsageText: "invar uninstall\ninvar uninstall --python .venv\ninvar uninstall --all",
		Flags: changeFlags(pythonFlag(),
			&cli.BoolFlag{Name: "all", Usage: "every Python of this prefix"}),
		Action: func(c *cli.Context) error {
			r, err := uninstall(c)
			if c.Bool("json") {
				return printed(c, "uninstall", r, err)
			}
			if err == nil {
				showRemoved(c.App.Writer, r)
			}
			return err
		},
	}
}

func uninstall(c *cli.Context) (r install.Removed, err error) {
	p, s, err := home(c)
	if err != nil {
		return r, err
	}
	o := install.UninstallOptions{Also: made}
	if !c.Bool("all") {
		if o.ID, err = which(c, p, s); err != nil {
			return r, err
		}
	}
	if err := change(c, p, s); err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, p.Unlock()) }()
	return p.Uninstall(c.Context, o)
}

func showRemoved(w io.Writer, r install.Removed) {
	for _, e := range r.Envs {
		fmt.Fprintf(w, "uninstalled from %s\n", or(e.Exe, e.Purelib))
	}
	showRestored(w, r.Restored)
	for _, l := range r.Left {
		fmt.Fprintf(w, "left        %s (invar did not make it)\n", l)
	}
	if r.Prefix {
		fmt.Fprintln(w, "the prefix is gone, too")
	}
}

func showRestored(w io.Writer, ms []install.Moved) {
	for _, m := range ms {
		fmt.Fprintf(w, "back        %s at %s\n", m.What, m.From)
	}
}
