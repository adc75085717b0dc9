package main

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/invar-ops/invar/internal/install"
	"github.com/invar-ops/invar/internal/invar"
	"github.com/invar-ops/invar/internal/python"
	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/run"
	"github.com/invar-ops/invar/internal/store"
)

// home opens the prefix of c.
func home(c *cli.Context) (*install.Prefix, invar.Session, error) {
	if err := argsAtMost(c, 0); err != nil {
		return nil, invar.Session{}, err
	}
	s, err := session(c)
	if err != nil {
		return nil, s, err
	}
	p, err := install.Open(s.Prefix)
	return p, s, err
}

// change takes the lock for a command that changes the prefix.
func change(c *cli.Context, p *install.Prefix, s invar.Session) error {
	return p.Lock(c.Context, store.LockOptions{NoWait: c.Bool("no-wait"), Command: "invar " + c.Command.Name, Progress: s.Progress})
}

func changeFlags(more ...cli.Flag) []cli.Flag {
	return append([]cli.Flag{
		prefixFlag(), jsonFlag(),
		&cli.BoolFlag{Name: "no-wait", Usage: "fail when another invar holds the prefix"},
		&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "no progress"},
	}, more...)
}

// which finds the one environment that a command means: --python, else the
// only one there is, else VIRTUAL_ENV. It never guesses among several.
func which(c *cli.Context, p *install.Prefix, s invar.Session) (string, error) {
	name := c.String("python")
	ids, err := p.IDs()
	if err != nil {
		return "", err
	}
	if name == "" && len(ids) == 1 {
		return ids[0], nil
	}
	if name == "" {
		name = run.Getenv(s.Env, "VIRTUAL_ENV")
	}
	if name == "" {
		return "", several(c, p, s, ids)
	}
	if id, ok, err := p.Match(name); ok || err != nil {
		return id, err
	}
	py, _, err := python.Find(c.Context, python.Options{Exe: name, Env: s.Env, Home: s.Prefix, Runner: s.Runner})
	if err != nil {
		return "", err
	}
	return py.ID(), nil
}

func several(c *cli.Context, p *install.Prefix, s invar.Session, ids []string) error {
	if len(ids) == 0 {
		return report.Problemf(report.Failed, "nothing is installed in %s", p.Dir).
			WithHint("invar build installs; --prefix DIR names another prefix")
	}
	st, err := p.Status(c.Context, s.Env)
	if err != nil {
		return err
	}
	var names []string
	for _, e := range st.Envs {
		names = append(names, fmt.Sprintf("%s (id %s)", or(e.Python.Exe, e.Python.Purelib), e.ID))
	}
	return report.Usagef("several Pythons are served from %s: %s", p.Dir, strings.Join(names, ", ")).
		WithHint("name one with --python PATH, or with its id")
}
