package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/invar-ops/invar/internal/image"
	"github.com/invar-ops/invar/internal/matrix"
	"github.com/invar-ops/invar/internal/report"
)

func ciCommand() *cli.Command {
	return &cli.Command{
		Name: "ci", Usage: "what a CI asks for",
		Description: "Templates for GitHub, GitLab, Jenkins and pre-commit are in docs/ci.md.",
		UsageText:   "invar ci matrix --images",
		Subcommands: []*cli.Command{ciMatrixCommand()},
	}
}

func ciMatrixCommand() *cli.Command {
	return &cli.Command{
		Name: "matrix", Usage: "the build matrix: targets x arch x OS x Python x torch",
		Description: "Prints {\"include\":[...]} in one line, on a terminal too: what GitHub's fromJSON takes.\n" +
			"A row has runner, container, requirements for pip, the probe level to require, and the tags\n" +
			"of its image where invar image build makes that combination as it is. Values of one filter\n" +
			"are alternatives; one that is in no row is an error, so that no job passes by not being there.",
		UsageText: "invar ci matrix\n" +
			"invar ci matrix --images --repository registry.example/me/invar\n" +
			"invar ci matrix --target cpu --arch amd64 --torch 2.10 --torch 2.15\n" +
			"matrix=$(invar ci matrix --images); echo \"matrix=$matrix\" >>\"$GITHUB_OUTPUT\"   in a script with set -e",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "json", Usage: "print the envelope that every command has; the rows are in .result.include"},
			&cli.StringSliceFlag{Name: "target", Usage: "`TARGET` as invar targets names it; may be repeated, as all filters"},
			&cli.StringSliceFlag{Name: "arch", Usage: "amd64 or arm64"},
			&cli.StringSliceFlag{Name: "os", Usage: "operating system, as ubuntu24.04"},
			&cli.StringSliceFlag{Name: "python", Usage: "`VERSION` of Python, as 3.12"},
			&cli.StringSliceFlag{Name: "torch", Usage: "`VERSION` of torch, as 2.10 or 2.10.0"},
			&cli.BoolFlag{Name: "images", Usage: "only combinations that invar image build makes"},
			&cli.StringSliceFlag{Name: "runner", Usage: "`ARCH=LABEL` of the machines for an architecture"},
			&cli.StringFlag{Name: "repository", Value: image.LocalRepository, EnvVars: []string{"INVAR_IMAGE_REPOSITORY"}, Usage: "`NAME` of the images without the tag"},
			&cli.StringFlag{Name: "tag", Value: release, Usage: "first part of every tag"},
		},
		Action: runCIMatrix,
	}
}

func runCIMatrix(c *cli.Context) error {
	if err := argsAtMost(c, 0); err != nil {
		return err
	}
	runners, err := runnerLabels(c.StringSlice("runner"))
	if err != nil {
		return err
	}
	rows, err := matrix.Plan(matrix.Options{Repository: c.String("repository"), Version: c.String("tag"), Runners: runners})
	if err != nil {
		return err
	}
	rows, err = matrix.Filter{
		Targets: c.StringSlice("target"), Arches: c.StringSlice("arch"), Systems: c.StringSlice("os"),
		Pythons: c.StringSlice("python"), Torches: c.StringSlice("torch"), Images: c.Bool("images"),
	}.Apply(rows)
	if err != nil {
		return err
	}
	result := map[string]any{"include": rows}
	if c.Bool("json") {
		return printed(c, "ci.matrix", result, nil)
	}
	if len(rows) > githubJobs {
		fmt.Fprintf(c.App.ErrWriter, "invar: note: %d rows, and GitHub takes %d jobs a matrix: filter, or split by --target\n", len(rows), githubJobs)
	}
	enc := json.NewEncoder(c.App.Writer)
	enc.SetEscapeHTML(false)
	return enc.Encode(result)
}

// githubJobs is the most jobs that GitHub makes of one matrix (docs.github.com,
// usage limits of Actions).
const githubJobs = 256

// runnerLabels reads --runner amd64=LABEL.
func runnerLabels(given []string) (map[string]string, error) {
	labels := map[string]string{}
	for _, g := range given {
		arch, label, ok := strings.Cut(g, "=")
		if arch = matrix.Arch(arch); !ok || label == "" || arch != "amd64" && arch != "arm64" {
			return nil, report.Usagef("--runner %q", g).WithWant("amd64=LABEL or arm64=LABEL", g)
		}
		labels[arch] = label
	}
	return labels, nil
}
