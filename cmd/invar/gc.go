package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/invar-ops/invar/internal/install"
)

// keepByDefault leaves one generation to roll back to.
const keepByDefault = 2

func gcCommand() *cli.Command {
	return &cli.Command{
		Name: "gc", Usage: "remove old generations and what nothing refers to",
		Description: "Keeps the current generation of each Python and those that rollback goes back to,\n" +
			"and the artifacts that they were made of. Everything else goes.",
		UsageText: "invar gc\ninvar gc --keep 1\ninvar gc --dry-run",
		Flags: changeFlags(
			&cli.IntFlag{Name: "keep", Value: keepByDefault, Usage: "keep `N` generations for each Python, the current one included"},
			&cli.BoolFlag{Name: "dry-run", Usage: "only say what would go"}),
		Action: func(c *cli.Context) error {
			r, err := gc(c)
			if c.Bool("json") {
				return printed(c, "gc", r, err)
			}
			if err == nil {
				showCollected(c, r)
			}
			return err
		},
	}
}

func gc(c *cli.Context) (r install.Collected, err error) {
	p, s, err := home(c)
	if err != nil {
		return r, err
	}
	o := install.GCOptions{Keep: c.Int("keep"), DryRun: c.Bool("dry-run")}
	if _, err := os.Stat(s.Prefix); o.Keep > 0 && errors.Is(err, fs.ErrNotExist) {
		return r, nil // no reason to make a prefix
	}
	if err := change(c, p, s); err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, p.Unlock()) }()
	return p.GC(c.Context, o)
}

func showCollected(c *cli.Context, r install.Collected) {
	w, verb := c.App.Writer, "removed"
	if c.Bool("dry-run") {
		verb = "would remove"
	}
	fmt.Fprintf(w, "%s %d generations (%s), %d store files (%s), %d build records\n",
		verb, len(r.Generations), size(r.Bytes), r.Store.Objects, size(r.Store.Bytes), r.Store.Actions)
	for _, l := range r.Left {
		fmt.Fprintf(w, "left        %s (invar did not make it)\n", l)
	}
}
