package main

import (
	"embed"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/invar-ops/invar/internal/report"
)

//go:embed completion
var completions embed.FS

func completionCommand() *cli.Command {
	return &cli.Command{
		Name: "completion", Usage: "print the completion script of a shell",
		UsageText:   "source <(invar completion bash)\nsource <(invar completion zsh)\ninvar completion fish | source",
		Description: "Needs the invar binary on PATH under that name.",
		ArgsUsage:   "bash|zsh|fish",
		Action: func(c *cli.Context) error {
			if err := argsAtMost(c, 1); err != nil {
				return err
			}
			shell := c.Args().First()
			if shell == "fish" {
				text, err := c.App.ToFishCompletion()
				if err != nil {
					return err
				}
				_, err = fmt.Fprint(c.App.Writer, text+fishTargets(c.App.Commands))
				return err
			}
			b, err := completions.ReadFile("completion/" + strings.ReplaceAll(shell, "/", "") + ".sh")
			if err != nil {
				return report.Usagef("completion of a shell").WithWant("bash, zsh or fish", or(shell, "nothing")).WithHint("invar completion --help")
			}
			_, err = c.App.Writer.Write(b)
			return err
		},
		BashComplete: func(c *cli.Context) { fmt.Fprintln(c.App.Writer, "bash\nzsh\nfish") },
	}
}

// fishTargets completes the argument of commands that take a target, which cli
// leaves out of fish's script.
func fishTargets(cmds []*cli.Command) string {
	var b strings.Builder
	for _, c := range cmds {
		if strings.Contains(c.ArgsUsage, "TARGET") {
			fmt.Fprintf(&b, "complete -c invar -n '__fish_seen_subcommand_from %s' -f -a '%s' -d target\n", c.Name, strings.Join(targetNames(), " "))
		}
	}
	return b.String()
}
