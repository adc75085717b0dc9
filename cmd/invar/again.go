package main

import (
	"errors"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/invar-ops/invar/internal/probe"
	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/run"
)

// A hint is written where the failure is found, which knows no command line:
// "install it again: invar build". Before it is shown, the commands in it get
// what this command was given (prefix, Python, target), so that they can be
// pasted and mean the same installation.

// command is "invar VERB" in a hint.
var command = regexp.MustCompile(`\binvar (build|plan|probe|status|rollback|uninstall|gc)\b`)

// clauseEnd is where the arguments of a command in a hint end at the latest.
var clauseEnd = regexp.MustCompile(`[;\n(),]|  |$`)

// again makes the commands in hint those of this invocation.
func again(c *cli.Context, hint string) string {
	var out strings.Builder
	for {
		m := command.FindStringSubmatchIndex(hint)
		if m == nil {
			out.WriteString(hint)
			return out.String()
		}
		end := m[1] + clauseEnd.FindStringIndex(hint[m[1]:])[0]
		at := m[1]
		if name, ok := namedTarget(hint[at:end]); ok { // flags go behind it
			at += strings.Index(hint[at:], name) + len(name)
		}
		out.WriteString(hint[:at])
		out.WriteString(given(c, hint[m[2]:m[3]], hint[m[1]:end]))
		hint = hint[at:]
	}
}

// given is what to add to verb, with a blank in front of each word; rest is
// what the hint says itself.
func given(c *cli.Context, verb, rest string) string {
	to := find(c.App.Commands, verb)
	if to == nil || c.Command == nil {
		return ""
	}
	var words []string
	name := c.Args().First()
	if _, named := namedTarget(rest); !named && name != "" && to.ArgsUsage == "[TARGET]" && c.Command.ArgsUsage == "[TARGET]" {
		words = append(words, name)
	}
	repeated := []string{"prefix", "python"}
	if verb == c.Command.Name {
		repeated = append(repeated, "soc", "torch", "torch-index", "wheelhouse", "offline")
	}
	for _, name := range repeated {
		if !c.IsSet(name) || fromEnv(c, name) || !takes(to, name) || strings.Contains(rest, "--"+name) {
			continue
		}
		if words = append(words, "--"+name); name != "offline" {
			words = append(words, run.Quote(c.String(name)))
		}
	}
	if len(words) == 0 {
		return ""
	}
	return " " + strings.Join(words, " ")
}

// namedTarget is the one that a command names already, be it by the word TARGET.
func namedTarget(rest string) (string, bool) {
	words := strings.Fields(rest)
	if len(words) > 0 && (words[0] == "TARGET" || slices.Contains(targetNames(), words[0])) {
		return words[0], true
	}
	return "", false
}

// fromEnv reports whether the environment says the same, which a command that
// is pasted reads too.
func fromEnv(c *cli.Context, name string) bool {
	for _, f := range c.Command.Flags {
		if doc, ok := f.(cli.DocGenerationFlag); ok && slices.Contains(f.Names(), name) {
			return slices.ContainsFunc(doc.GetEnvVars(), func(v string) bool { return os.Getenv(v) == c.String(name) && c.String(name) != "" })
		}
	}
	return false
}

func takes(c *cli.Command, flag string) bool {
	return slices.ContainsFunc(c.Flags, func(f cli.Flag) bool { return slices.Contains(f.Names(), flag) })
}

// retell does it for every hint of err, and returns err.
func retell(c *cli.Context, err error) error {
	if p, ok := errors.AsType[*report.Problem](err); ok {
		p.Hint = again(c, p.Hint)
	}
	if u, ok := errors.AsType[*report.UnmetError](err); ok {
		for i := range u.All {
			u.All[i].Hint = again(c, u.All[i].Hint)
		}
	}
	return err
}

// retellChecks does it for the checks of a probe.
func retellChecks(c *cli.Context, res *probe.Result) {
	for i := range res.Checks {
		res.Checks[i].Hint = again(c, res.Checks[i].Hint)
	}
}
