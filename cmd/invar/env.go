package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/invar-ops/invar/internal/install"
	"github.com/invar-ops/invar/internal/released"
	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/run"
)

func envCommand() *cli.Command {
	return &cli.Command{
		Name: "env", Usage: "the environment of an installation, for eval",
		Description: "Prints export lines of what an installation needs beside its Python: on Ascend\n" +
			"CANN's environment, as its set_env.sh would set it, and the installed operators.\n" +
			"A cpu or cuda installation needs nothing.",
		UsageText: "eval \"$(invar env)\"\ninvar env --unset            the lines that take it back\ninvar env --json",
		Flags: []cli.Flag{
			prefixFlag(), pythonFlag(), jsonFlag(), cannFlag(""),
			&cli.BoolFlag{Name: "unset", Usage: "print the lines that bring the present environment back"},
		},
		Action: runEnv,
	}
}

func execCommand() *cli.Command {
	return &cli.Command{
		Name: "exec", Usage: "run a command in the environment of an installation",
		Description: "Starts CMD with what invar env prints, on this terminal, and ends with its exit\ncode. 128+N: signal N ended it.",
		UsageText:   "invar exec -- python -c 'import batch_invariant_ops'\ninvar exec -- vllm serve MODEL",
		ArgsUsage:   "-- CMD [ARG...]",
		Flags:       []cli.Flag{prefixFlag(), pythonFlag(), cannFlag("")},
		Action:      runExec,
	}
}

// environment is the process's own and that of the current installation.
func environment(c *cli.Context) (before, after []string, r install.Receipt, err error) {
	s, err := session(c)
	if err != nil {
		return nil, nil, r, err
	}
	p, err := install.Open(s.Prefix)
	if err != nil {
		return nil, nil, r, err
	}
	id, err := which(c, p, s)
	if err != nil {
		return nil, nil, r, err
	}
	if r, err = p.Current(id); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil, r, report.Problemf(report.Failed, "%w", err).WithHint("invar build")
		}
		return nil, nil, r, err
	}
	e, err := released.Of(c.Context, s.Runner, r, local(c.String("cann")), s.Env)
	return s.Env, e.Apply(s.Env, r), r, err
}

// A environmentJSON is what invar env --json prints.
type environmentJSON struct {
	Target string            `json:"target"`
	Python string            `json:"python"`
	Vars   map[string]string `json:"vars"`
}

func runEnv(c *cli.Context) error {
	if err := argsAtMost(c, 0); err != nil {
		return err
	}
	before, after, r, err := environment(c)
	if c.Bool("json") && err != nil {
		return printed(c, "env", nil, err)
	}
	if err != nil {
		return err
	}
	changes := released.Changes(before, after)
	if c.Bool("json") {
		out := environmentJSON{Target: r.Target, Python: r.Python.Exe, Vars: map[string]string{}}
		for _, v := range changes {
			out.Vars[v.Name] = v.Value
		}
		return printed(c, "env", out, nil)
	}
	for _, v := range changes {
		old, set := lookup(before, v.Name)
		switch {
		case !c.Bool("unset"):
			fmt.Fprintf(c.App.Writer, "export %s=%s\n", v.Name, run.Quote(v.Value))
		case set:
			fmt.Fprintf(c.App.Writer, "export %s=%s\n", v.Name, run.Quote(old))
		default:
			fmt.Fprintf(c.App.Writer, "unset %s\n", v.Name)
		}
	}
	return nil
}

func lookup(env []string, name string) (string, bool) {
	for _, kv := range env {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			return v, true
		}
	}
	return "", false
}

func runExec(c *cli.Context) error {
	argv := c.Args().Slice()
	if len(argv) > 0 && argv[0] == "--" {
		argv = argv[1:]
	}
	if len(argv) == 0 {
		return report.Usagef("exec needs a command").WithHint("invar exec -- python app.py")
	}
	_, after, _, err := environment(c)
	if err != nil {
		return err
	}
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	code, err := run.Attach(c.Context, run.Cmd{Argv: argv, Dir: dir, Env: after})
	if err != nil {
		if run.NotFound(err) {
			return &report.Problem{Err: fmt.Errorf("%s: no such program", argv[0]), Code: 127, Hint: "it is looked for on PATH"}
		}
		return err
	}
	if code != 0 {
		return fmt.Errorf("%w%w", silent{}, &report.Problem{Err: fmt.Errorf("%s ended with %d", argv[0], code), Code: code})
	}
	return nil
}
