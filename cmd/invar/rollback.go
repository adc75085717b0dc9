package main

import (
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/invar-ops/invar/internal/install"
)

func rollbackCommand() *cli.Command {
	return &cli.Command{
		Name: "rollback", Usage: "go back to the generation before",
		Description: "Makes the generation before the current one current again, with one rename, and\n" +
			"brings back what the current one had moved aside with --replace or --take-over.",
		UsageText: "invar rollback\ninvar rollback --python .venv",
		Flags:     changeFlags(pythonFlag()),
		Action: func(c *cli.Context) error {
			back, err := rollback(c)
			if c.Bool("json") {
				return printed(c, "rollback", back, err)
			}
			if err == nil {
				showRollback(c, back)
			}
			return err
		},
	}
}

func rollback(c *cli.Context) (back install.RolledBack, err error) {
	p, s, err := home(c)
	if err != nil {
		return back, err
	}
	id, err := which(c, p, s)
	if err != nil {
		return back, err
	}
	if err := change(c, p, s); err != nil {
		return back, err
	}
	defer func() { err = errors.Join(err, p.Unlock()) }()
	return p.Rollback(c.Context, id)
}

func showRollback(c *cli.Context, back install.RolledBack) {
	w := c.App.Writer
	if back.To == 0 {
		fmt.Fprintf(w, "generation %d is off; nothing of invar is installed for this Python\n", back.From)
	} else {
		fmt.Fprintf(w, "generation %d is current again (%s), %d is off\n", back.To, back.Receipt.Target, back.From)
	}
	showRestored(w, back.Restored)
	if back.Pip != "" {
		fmt.Fprintf(w, "what pip changed with generation %d stays; back: %s\n", back.From, back.Pip)
	}
}
