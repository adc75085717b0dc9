package main

import (
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"github.com/invar-ops/invar/internal/invar"
)

// detectTools looks for compiler and Python where detect is about this machine
// and more than the verdict was asked for; nil otherwise.
func detectTools(c *cli.Context) (*invar.Tools, error) {
	if c.IsSet("replay") || c.IsSet("from") || c.IsSet("root") || !c.Bool("json") && !c.Bool("evidence") {
		return nil, nil //nolint:nilnil // nothing was asked for
	}
	s, err := session(c)
	if err != nil {
		return nil, err
	}
	t := s.Tools(c.Context)
	return &t, nil
}

// showTools prints them as further rows of the evidence.
func showTools(w io.Writer, t *invar.Tools) {
	if t == nil {
		return
	}
	row := func(name, said string) { fmt.Fprintf(w, "%-37s %s\n", name, said) }
	if t.Compiler != nil {
		row("c++ compiler", t.Compiler.Vendor+" "+t.Compiler.Version+", "+t.Compiler.Path)
	}
	for _, r := range t.Compilers {
		row("c++ compiler "+r.Command, r.Reason)
	}
	if t.Python != nil {
		row("python with torch", t.Python.Exe+", torch "+t.Python.Torch.Version)
	}
	for _, r := range t.Pythons {
		row("python", r.Exe+": "+r.Reason)
	}
}
