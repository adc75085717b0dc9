package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/urfave/cli/v2"

	"github.com/invar-ops/invar/internal/build"
	"github.com/invar-ops/invar/internal/plan"
	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/runpkg"
	"github.com/invar-ops/invar/internal/store"
)

func packageCommand() *cli.Command {
	return &cli.Command{
		Name: "package", Usage: "inspect, verify, extract, pack or compare run packages",
		Description: "Opens any makeself package without running a byte of it, and writes invar's own.",
		UsageText: "invar package inspect ops.run\ninvar package verify ops.run\n" +
			"invar package extract ops.run --dir ops\ninvar package diff old.run new.run",
		Subcommands: []*cli.Command{
			inspectPackage(), verifyPackage(), extractPackage(), diffPackages(), packCommand(), wheelCommand(), proveCommand(),
		},
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
		UsageText: "invar package pack DIR --name my-ops --version 1.0 --out dist\ninvar package pack --spec pack.json --out dist",
		ArgsUsage: "[DIR]",
		Flags: append(specFlags("run package"),
			&cli.StringFlag{Name: "name", Usage: "`NAME` of a package made from DIR"},
			&cli.StringFlag{Name: "version", Usage: "`VERSION` of a package made from DIR"},
			&cli.StringFlag{Name: "platform", Value: runpkg.Platform(runtime.GOOS, runtime.GOARCH), Usage: "`PLATFORM` of a package made from DIR"},
			&cli.StringFlag{Name: "codec", Value: string(runpkg.Gzip), Usage: "gzip or zstd, for a package made from DIR"},
		),
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return packFolder(c)
			}
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

// packFolder packs every file below a folder.
func packFolder(c *cli.Context) error {
	if err := argsAtMost(c, 1); err != nil {
		return err
	}
	if c.String("spec") != "" || c.String("name") == "" || c.String("version") == "" {
		return report.Usagef("a folder needs --name and --version, and no --spec").WithHint("invar package pack --help")
	}
	dir := c.Args().First()
	if st, err := os.Stat(dir); err != nil || !st.IsDir() {
		return report.Usagef("%s is no folder", dir)
	}
	path := filepath.Join(c.String("out"), runpkg.FileName(c.String("name"), c.String("version"), c.String("platform")))
	r, err := runpkg.Write(c.Context, path, runpkg.Spec{
		Manifest: runpkg.Manifest{Name: c.String("name"), Version: c.String("version"), Platform: c.String("platform")},
		Tree:     os.DirFS(dir), Codec: runpkg.Codec(c.String("codec")),
	})
	return packed(c, "package.pack", r.Path, r.SHA256, r, err)
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
		return report.Usagef("--spec %s: %w", file, err)
	}
	return nil
}
