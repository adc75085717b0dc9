package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/runpkg"
)

// openArgs opens the packages that the arguments name, exactly n of them.
func openArgs(c *cli.Context, n int) ([]*runpkg.Package, func(), error) {
	if c.NArg() != n {
		return nil, nil, report.Usagef("want %d run package(s), got %d", n, c.NArg()).WithHint("invar %s --help", commandPath(c))
	}
	var all []*runpkg.Package
	closeAll := func() {
		for _, p := range all {
			_ = p.Close()
		}
	}
	for _, path := range c.Args().Slice() {
		p, err := runpkg.Open(path)
		if err != nil {
			closeAll()
			return nil, nil, err
		}
		all = append(all, p)
	}
	return all, closeAll, nil
}

// reading is a command that reads packages: it opens n of them, asks for the
// result, and prints it as JSON or with show.
func reading[T any](name string, n int, ask func(*cli.Context, []*runpkg.Package) (T, error), show func(io.Writer, T)) cli.ActionFunc {
	return func(c *cli.Context) error {
		var res T
		ps, closeAll, err := openArgs(c, n)
		if err == nil {
			defer closeAll()
			res, err = ask(c, ps)
		}
		if c.Bool("json") {
			return printed(c, name, res, err)
		}
		show(c.App.Writer, res)
		return err
	}
}

type inspected struct {
	Package *runpkg.Package `json:"package"`
	Entries []runpkg.Entry  `json:"entries"`
}

func inspectPackage() *cli.Command {
	return &cli.Command{
		Name: "inspect", Usage: "what a run package is and holds", ArgsUsage: "FILE",
		UsageText: "invar package inspect ops.run", Flags: []cli.Flag{jsonFlag()},
		Action: reading("package.inspect", 1, func(c *cli.Context, ps []*runpkg.Package) (inspected, error) {
			entries, err := ps[0].Entries(c.Context, runpkg.Options{})
			return inspected{ps[0], entries}, err
		}, func(w io.Writer, r inspected) {
			if r.Package != nil {
				showPackage(w, r)
			}
		}),
	}
}

func showPackage(w io.Writer, r inspected) {
	p := r.Package
	row := func(k, v string) {
		if v != "" {
			fmt.Fprintf(w, "%-10s %s\n", k, v)
		}
	}
	row("kind", strings.TrimSpace(string(p.Kind)+" "+p.Makeself))
	row("label", p.Label)
	row("runs", strings.TrimSpace(p.Script+" "+p.ScriptArgs))
	for _, pl := range p.Payloads {
		row("payload", fmt.Sprintf("%s, %s at byte %d", pl.Codec, size(pl.Size), pl.Offset))
		row("sha256", pl.SHA256)
		row("md5", pl.MD5)
	}
	if m := p.Manifest; m != nil {
		row("name", m.Name+" "+m.Version+" "+m.Platform)
		row("contract", m.Contract)
		row("levels", strings.Join(m.ISALevels, ", "))
		row("operators", strings.Join(m.Operators, ", "))
		row("compiler", m.Compiler)
	}
	for _, e := range r.Entries {
		text := fmt.Sprintf("%04o %10d  %s", e.Mode, e.Size, e.Path)
		if e.Link != "" {
			text += " -> " + e.Link
		}
		fmt.Fprintln(w, text)
	}
}

func verifyPackage() *cli.Command {
	return &cli.Command{
		Name: "verify", Usage: "check sizes, digests, names and limits without running anything", ArgsUsage: "FILE",
		UsageText: "invar package verify ops.run", Flags: []cli.Flag{jsonFlag()},
		Action: reading("package.verify", 1, func(c *cli.Context, ps []*runpkg.Package) (runpkg.Report, error) {
			return ps[0].Verify(c.Context, runpkg.Options{})
		}, showReport),
	}
}

func showReport(w io.Writer, r runpkg.Report) {
	for _, ch := range r.Checks {
		fmt.Fprintf(w, "%-5s %s  %s\n", paint(w, string(ch.Status), string(ch.Status)), ch.Name, ch.Got)
	}
	if len(r.Entries) > 0 {
		fmt.Fprintf(w, "%d entries, %s unpacked\n", len(r.Entries), size(r.Bytes))
	}
}

func extractPackage() *cli.Command {
	return &cli.Command{
		Name: "extract", Usage: "unpack into a new or empty folder, running nothing", ArgsUsage: "FILE",
		UsageText: "invar package extract ops.run --dir ops",
		Flags:     []cli.Flag{jsonFlag(), &cli.StringFlag{Name: "dir", Usage: "folder `DIR` to unpack into"}},
		Action: func(c *cli.Context) error {
			if c.String("dir") == "" {
				return report.Usagef("--dir is needed").WithHint("invar package extract FILE --dir DIR")
			}
			return reading("package.extract", 1, func(c *cli.Context, ps []*runpkg.Package) (runpkg.Report, error) {
				return ps[0].Extract(c.Context, c.String("dir"), runpkg.Options{})
			}, showReport)(c)
		},
	}
}

func diffPackages() *cli.Command {
	return &cli.Command{
		Name: "diff", Usage: "compare two run packages; exit code 1 when they differ", ArgsUsage: "A B",
		UsageText: "invar package diff old.run new.run", Flags: []cli.Flag{jsonFlag()},
		Action: reading("package.diff", 2, func(c *cli.Context, ps []*runpkg.Package) ([]runpkg.Change, error) {
			changes, err := runpkg.Diff(c.Context, ps[0], ps[1], runpkg.Options{})
			if err == nil && len(changes) > 0 {
				err = report.Problemf(report.Failed, "%d differences", len(changes))
			}
			return changes, err
		}, func(w io.Writer, changes []runpkg.Change) {
			for _, ch := range changes {
				fmt.Fprintf(w, "%s %s: %s, %s\n", or(ch.Path, "header"), ch.Fact, or(ch.A, "absent"), or(ch.B, "absent"))
			}
		}),
	}
}
