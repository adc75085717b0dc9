package main

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// permute moves flags in front of arguments, because cli v2 stops reading
// flags at the first argument and people write `invar build cpu --jobs 2`.
// What follows "--" stays where it is.
func permute(app *cli.App, args []string) []string {
	if len(args) < 2 {
		return args
	}
	out, rest := []string{args[0]}, args[1:]
	flags, cmds := app.Flags, app.Commands
	for {
		i := slices.IndexFunc(rest, func(a string) bool { return !strings.HasPrefix(a, "-") })
		if i < 0 {
			return append(out, rest...)
		}
		// A flag of the app itself may stand before the command.
		if i > 0 && len(out) == 1 {
			return append(out, rest...)
		}
		c := find(cmds, rest[0])
		if c == nil {
			break
		}
		out, rest = append(out, rest[0]), rest[1:]
		flags, cmds = c.Flags, c.Subcommands
		if len(cmds) == 0 || len(rest) == 0 {
			break
		}
	}
	opts, words := split(flags, rest)
	return slices.Concat(out, opts, words)
}

func find(cmds []*cli.Command, name string) *cli.Command {
	for _, c := range cmds {
		if c.HasName(name) {
			return c
		}
	}
	return nil
}

// split tells flags (with their values) and arguments apart.
func split(flags []cli.Flag, args []string) (opts, words []string) {
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case a == "--":
			return opts, append(append(words, "--"), args[i+1:]...)
		case a == "-" || !strings.HasPrefix(a, "-"):
			words = append(words, a)
		default:
			if letter, value, ok := attached(flags, a); ok {
				opts = append(opts, letter, value)
				continue
			}
			opts = append(opts, a)
			if !strings.Contains(a, "=") && takesValue(flags, strings.TrimLeft(a, "-")) && i+1 < len(args) {
				i++
				opts = append(opts, args[i])
			}
		}
	}
	return opts, words
}

// attached tells "-j2" apart, as make and tar read it: a flag of one letter and
// its value. A flag that is called so as a whole stays one.
func attached(flags []cli.Flag, a string) (letter, value string, ok bool) {
	if len(a) < 3 || a[0] != '-' || a[1] == '-' || a[2] == '=' {
		return "", "", false
	}
	name, _, _ := strings.Cut(a[1:], "=")
	if slices.ContainsFunc(flags, func(f cli.Flag) bool { return slices.Contains(f.Names(), name) }) {
		return "", "", false
	}
	return a[:2], a[2:], takesValue(flags, a[1:2])
}

func takesValue(flags []cli.Flag, name string) bool {
	for _, f := range flags {
		if slices.Contains(f.Names(), name) {
			d, ok := f.(cli.DocGenerationFlag)
			return ok && d.TakesValue()
		}
	}
	return false
}
