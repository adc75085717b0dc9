package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
	"github.com/xrash/smetrics"

	"github.com/invar-ops/invar/internal/report"
)

// execute parses args (with the program name first), runs the command and
// prints its error, if any.
func execute(ctx context.Context, args []string) error {
	app := newApp()
	out := &output{File: os.Stdout}
	app.Writer = out
	err := app.RunContext(ctx, permute(app, args))
	if err == nil && out.err != nil {
		err = fmt.Errorf("stdout: %w", out.err) // a result that nobody can read is no success
	}
	if err == nil {
		return nil
	}
	// A command that failed before it had anything to print still owes the
	// reader of its JSON one object.
	if _, shown := errors.AsType[silent](err); !shown && wantsJSON(args) && report.WriteJSON(os.Stdout, "error", nil, err) == nil {
		return err
	}
	showError(ctx, os.Stderr, err)
	return err
}

// wantsJSON looks for --json itself: the flags may be what could not be parsed.
func wantsJSON(args []string) bool {
	for _, a := range args[min(1, len(args)):] {
		switch a {
		case "--":
			return false
		case "--json", "-json", "--json=true":
			return true
		}
	}
	return false
}

func newApp() *cli.App {
	app := &cli.App{
		Name:                      "invar",
		Usage:                     "build, install and prove batch-invariant operators",
		UsageText:                 "invar COMMAND [options] [arguments]\n\ninvar build            detect, build both stages, install, probe\ninvar build ascend910b the same for one target\ninvar probe            is the installation good, level by level",
		Version:                   invarVersion(),
		HideHelpCommand:           true,
		HideVersion:               true,
		EnableBashCompletion:      true,
		Suggest:                   true,
		DisableSliceFlagSeparator: true,
		ExitErrHandler:            func(*cli.Context, error) {}, // main decides, once
		OnUsageError:              usageError,
		Commands:                  commands(),
	}
	app.Action = func(c *cli.Context) error {
		if c.Args().Present() {
			p := report.Usagef("unknown command %q", c.Args().First())
			if s := closest(app.Commands, c.Args().First()); s != "" {
				return p.WithHint("did you mean: invar %s", s)
			}
			return p.WithHint("invar --help lists the commands")
		}
		return cli.ShowAppHelp(c)
	}
	closeTraps(app.Commands)
	return app
}

// closest is the command whose name is nearly the one that was typed, or "".
// cli.SuggestCommand always finds one, however far, and words it itself.
func closest(cmds []*cli.Command, typed string) string {
	name, best := "", 0.85 // below that, words only share letters
	for _, c := range cmds {
		if s := smetrics.JaroWinkler(typed, c.Name, 0.7, 4); s > best {
			name, best = c.Name, s
		}
	}
	return name
}

// closeTraps closes the traps of cli v2 on every command: usage errors are ours
// (the handler is not inherited) and there is no help sub-command.
func closeTraps(cmds []*cli.Command) {
	for _, c := range cmds {
		c.OnUsageError = usageError
		if act := c.Action; act != nil {
			c.Action = func(c *cli.Context) error { return retell(c, act(c)) }
		}
		c.HideHelpCommand = true
		closeTraps(c.Subcommands)
		if len(c.Subcommands) > 0 && c.Action == nil {
			c.Action = needsSubcommand
		}
	}
}

func needsSubcommand(c *cli.Context) error {
	if c.Args().Present() {
		p := report.Usagef("unknown command %q", commandPath(c)+" "+c.Args().First())
		if s := closest(c.Command.Subcommands, c.Args().First()); s != "" {
			return p.WithHint("did you mean: invar %s %s", commandPath(c), s)
		}
		return p.WithHint("invar %s --help", commandPath(c))
	}
	return report.Usagef("%s needs a command", commandPath(c)).WithHint("invar %s --help", commandPath(c))
}

func usageError(c *cli.Context, err error, _ bool) error {
	name := strings.TrimSpace("invar " + commandPath(c))
	// The flag package writes "-name" whatever was typed.
	text := oneDash.ReplaceAllString(err.Error(), " --$1")
	return report.Usagef("%s", text).WithHint("%s --help", name)
}

var oneDash = regexp.MustCompile(` -([a-zA-Z][-a-zA-Z]+)`)

// commandPath is the command as it is typed after "invar": "package inspect".
// FullName of cli v2 leaves the parent out.
func commandPath(c *cli.Context) string {
	var names []string
	for _, l := range c.Lineage() {
		if l.Command != nil && l.Command.Name != "" && l.Command.Name != c.App.Name {
			names = append(names, l.Command.Name)
		}
	}
	slices.Reverse(names)
	return strings.Join(slices.Compact(names), " ")
}

// argsAtMost refuses surplus arguments: a typo must not be ignored.
func argsAtMost(c *cli.Context, n int) error {
	if c.NArg() > n {
		return report.Usagef("unexpected argument %q", c.Args().Get(n)).WithHint("invar %s --help", commandPath(c))
	}
	return nil
}

// commands lists every command in the order of the help: the main job, what
// looks, what manages.
func commands() []*cli.Command {
	return []*cli.Command{
		buildCommand(), planCommand(), detectCommand(), doctorCommand(), targetsCommand(),
		probeCommand(), statusCommand(), rollbackCommand(), uninstallCommand(), gcCommand(),
		envCommand(), execCommand(), sourceCommand(), shimCommand(), packageCommand(), imageCommand(), ciCommand(),
		verifyCommand(), lintCommand(), capacityCommand(), setupCommand(), explainCommand(), versionCommand(), completionCommand(), manCommand(),
	}
}

// jsonFlag is the --json of every command.
func jsonFlag() cli.Flag {
	return &cli.BoolFlag{Name: "json", Usage: "print one JSON object on stdout"}
}

func prefixFlag() cli.Flag {
	return &cli.StringFlag{
		Name: "prefix", EnvVars: []string{"INVAR_HOME"},
		Usage: "where invar keeps its store and generations (default /opt/invar for root, else $XDG_DATA_HOME/invar)",
	}
}

func pythonFlag() cli.Flag {
	return &cli.StringFlag{
		Name: "python", EnvVars: []string{"INVAR_PYTHON"},
		Usage: "interpreter or environment to use (default VIRTUAL_ENV, then the first python3 on PATH with torch)",
	}
}

// printed ends a command that has written its own JSON: the error, if any,
// keeps its exit code and is not shown a second time.
func printed(c *cli.Context, command string, result any, err error) error {
	_ = retell(c, err) // in place
	if werr := report.WriteJSON(c.App.Writer, command, result, err); werr != nil {
		return fmt.Errorf("stdout: %w", werr)
	}
	if err != nil {
		return fmt.Errorf("%w%w", silent{}, err)
	}
	return nil
}

// silent marks an error that the reader has seen already.
type silent struct{}

func (silent) Error() string { return "" }
