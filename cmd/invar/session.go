package main

import (
	"os"

	"github.com/urfave/cli/v2"

	"github.com/invar-ops/invar/internal/invar"
	"github.com/invar-ops/invar/internal/run"
)

// session is what a command works with, from its flags and the environment.
func session(c *cli.Context) (invar.Session, error) {
	env := os.Environ()
	prefix := c.String("prefix")
	if prefix == "" {
		var err error
		if prefix, err = invar.DefaultPrefix(env); err != nil {
			return invar.Session{}, err
		}
	}
	return invar.Session{
		Prefix: absolute(prefix), Env: env, Runner: run.System{}, Version: release,
		Progress: newProgress(c.App.ErrWriter, c.Bool("quiet")),
	}, nil
}
