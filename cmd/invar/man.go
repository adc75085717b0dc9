package main

import (
	"fmt"

	"github.com/urfave/cli/v2"
)

func manCommand() *cli.Command {
	return &cli.Command{
		Name: "man", Usage: "print the manual page",
		UsageText:   "invar man | man -l -\ninvar man > /usr/local/share/man/man1/invar.1",
		Description: "The page is roff, made from the same texts as --help.",
		Action: func(c *cli.Context) error {
			if err := argsAtMost(c, 0); err != nil {
				return err
			}
			page, err := c.App.ToManWithSection(1)
			if err != nil {
				return fmt.Errorf("manual page: %w", err)
			}
			_, err = fmt.Fprint(c.App.Writer, page)
			return err
		},
	}
}
