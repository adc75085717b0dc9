package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"github.com/invar-ops/invar/internal/build"
	"github.com/invar-ops/invar/internal/plan"
	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/store"
)

func packageCommand() *cli.Command {
	return &cli.Command{
		Name: "package", Usage: "inspect, verify, extract, pack or compare run packages",
		Description: "Opens any makeself package without running a byte of it, and writes invar's own.",
		Subcommands: []*cli.Command{packCommand(), wheelCommand()},
	}
}

func specFlags(what string) []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "spec", Usage: "`FILE` that says what goes in, as invar plan --shell prints it"},
		&cli.StringFlag{Name: "out", Value: ".", Usage: "folder `DIR` to write the " + what + " to"},
		jsonFlag(),
	}
}

func packCommand() *cli.Command {
	return &cli.Command{
		Name: "pack", Usage: "write a run package from files",
		UsageText: "invar package pack --spec pack.json --out dist",
		Flags:     specFlags("run package"),
		Action: func(c *cli.Context) error {
			var spec plan.PackSpec
			if err := readSpec(c, &spec); err != nil {
				return err
			}
			r, err := build.WriteRunPackage(c.Context, ".", spec, c.String("out"))
			return packed(c, "package.pack", r.Path, r.SHA256, r, err)
		},
	}
}

func wheelCommand() *cli.Command {
	return &cli.Command{
		Name: "wheel", Usage: "write a wheel from a Python project and its compiled library",
		UsageText: "invar package wheel --spec wheel.json --out dist",
		Flags:     specFlags("wheel"),
		Action: func(c *cli.Context) error {
			var spec plan.WheelSpec
			if err := readSpec(c, &spec); err != nil {
				return err
			}
			w, err := build.WriteWheel(c.Context, ".", spec, c.String("out"))
			return packed(c, "package.wheel", w.Path, w.SHA256, w, err)
		},
	}
}

func packed(c *cli.Context, command, path, sum string, result any, err error) error {
	if c.Bool("json") {
		return printed(c, command, result, err)
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.App.Writer, "%s  sha256:%s\n", path, sum)
	return err
}

func readSpec(c *cli.Context, v any) error {
	if err := argsAtMost(c, 0); err != nil {
		return err
	}
	file := c.String("spec")
	if file == "" {
		return report.Usagef("--spec is needed").WithHint("invar plan --shell prints specifications")
	}
	b, err := os.ReadFile(filepath.Clean(file))
	if err != nil {
		return report.Usagef("--spec: %w", err)
	}
	if err := store.DecodeJSON(b, v); err != nil {
		if _, ok := err.(*json.SyntaxError); ok {
			return report.Usagef("--spec %s is no JSON: %w", file, err)
		}
		return report.Usagef("--spec %s: %w", file, err)
	}
	return nil
}
