package main

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/invar-ops/invar/internal/build"
	"github.com/invar-ops/invar/internal/proof"
	"github.com/invar-ops/invar/internal/run"
)

// proveCommand does by hand what a build of cuda does before it packs.
func proveCommand() *cli.Command {
	return &cli.Command{
		Name: "prove", Usage: "look into GPU machine code: architectures, registers, no atomic additions",
		UsageText: "invar package prove --spec prove.json --out build/cuda/proof.json",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "spec", Usage: "`FILE` that says what must be there, as invar plan cuda --shell prints it"},
			&cli.StringFlag{Name: "out", Value: "proof.json", Usage: "`FILE` to write what was found to"},
			jsonFlag(),
		},
		Action: func(c *cli.Context) error {
			var spec proof.Spec
			if err := readSpec(c, &spec); err != nil {
				return err
			}
			s, err := session(c)
			if err != nil {
				return err
			}
			p, err := proof.Make(c.Context, ".", spec, proof.Tools{Runner: s.Runner, Env: run.Pick(s.Env, "PATH")})
			if err == nil {
				err = build.WriteProof(c.String("out"), p)
			}
			if c.Bool("json") {
				return printed(c, "package.prove", p, err)
			}
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(c.App.Writer, "%s  %d kernels in %d images, none with floating-point atomics\n", c.String("out"), p.Count(), len(p.Images))
			return err
		},
	}
}
