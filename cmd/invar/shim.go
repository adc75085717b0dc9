package main

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/invar-ops/invar/internal/fetch"
	"github.com/invar-ops/invar/internal/python"
	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/vllmascend"
)

func shimCommand() *cli.Command {
	return &cli.Command{
		Name: "shim", Usage: "let vllm-ascend's own build call invar",
		Description: "Replaces csrc/build_batch_invariant_ops.sh of the source tree DIR by two lines that\n" +
			"call invar, and keeps the original beside it. A pip install of the tree with\n" +
			"VLLM_BATCH_INVARIANT=1 then ends as invar ends.",
		UsageText: "invar shim vllm-ascend\ninvar shim vllm-ascend --undo",
		ArgsUsage: "DIR",
		Flags: []cli.Flag{
			jsonFlag(),
			&cli.BoolFlag{Name: "undo", Usage: "bring the original back"},
		},
		Action: func(c *cli.Context) error {
			if c.NArg() == 0 {
				return report.Usagef("shim needs the source tree of vllm-ascend").WithHint("invar shim DIR")
			}
			if err := argsAtMost(c, 1); err != nil {
				return err
			}
			do, done, was := vllmascend.Shim, "calls invar; the original is "+"%s", "calls invar already"
			if c.Bool("undo") {
				do, done, was = vllmascend.Unshim, "is the original again%.0s", "is the original"
			}
			s, err := do(c.Args().First())
			if c.Bool("json") {
				return printed(c, "shim", s, err)
			}
			if err != nil {
				return err
			}
			if !s.Changed {
				fmt.Fprintf(c.App.Writer, "%s %s\n", s.Script, was)
				return nil
			}
			fmt.Fprintf(c.App.Writer, "%s "+done+"\n", s.Script, s.Kept)
			return nil
		},
	}
}

func sourceCommand() *cli.Command {
	return &cli.Command{
		Name: "source", Usage: "fetch the source tree that matches what is installed",
		Subcommands: []*cli.Command{{
			Name: "vllm-ascend", Usage: "the tree of a released vllm-ascend, from the package index",
			Description: "Fetches the source distribution of VERSION, or of the vllm-ascend that is installed,\n" +
				"compares it with the digest that the index gives, and unpacks it.",
			UsageText: "invar source vllm-ascend\ninvar source vllm-ascend 0.23.0.post1 --into src",
			ArgsUsage: "[VERSION]",
			Flags: []cli.Flag{
				prefixFlag(), pythonFlag(), jsonFlag(),
				&cli.StringFlag{Name: "into", Value: ".", Usage: "folder `DIR` to make the tree in"},
				&cli.StringFlag{Name: "index", EnvVars: []string{"INVAR_INDEX"}, Usage: "simple index `URL` (default: that of uv and pip, else the public one)"},
				&cli.StringSliceFlag{Name: "ca-file", EnvVars: []string{"INVAR_CA_FILE"}, Usage: "trust the certificates in `FILE` (PEM) beside the system's"},
				&cli.BoolFlag{Name: "offline", EnvVars: []string{"INVAR_OFFLINE"}, Usage: "use no network"},
				&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "no progress"},
			},
			Action: runSource,
		}},
	}
}

func runSource(c *cli.Context) error {
	if err := argsAtMost(c, 1); err != nil {
		return err
	}
	s, err := session(c)
	if err != nil {
		return err
	}
	v := c.Args().First()
	if v == "" {
		py, _, err := python.Find(c.Context, python.Options{Exe: c.String("python"), Env: s.Env, Home: s.Prefix, Runner: s.Runner})
		if err != nil {
			return err
		}
		d, ok := py.Lookup(vllmascend.Dist)
		if !ok {
			return report.Problemf(report.Unmet, "vllm-ascend is not installed in %s", or(py.Exe, "any Python that was found")).
				WithHint("name a version: invar source vllm-ascend VERSION, or a Python: --python")
		}
		v = d.Version
	}
	f, err := vllmascend.Source{
		Version: v, Index: c.String("index"), Into: absolute(c.String("into")),
		Fetch: fetch.Options{
			Cache: s.Cache(), Offline: c.Bool("offline"), Env: s.Env, CAFiles: c.StringSlice("ca-file"), Stage: "source", Progress: s.Progress,
		},
	}.Get(c.Context, s.Runner, s.Env)
	if c.Bool("json") {
		return printed(c, "source", f, err)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(c.App.Writer, "%s\nvllm-ascend %s from %s, sha256 %s\n", f.Tree.Dir, f.Tree.Version, f.Index, f.SHA256[:12])
	return nil
}
