package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/invar-ops/invar/internal/probe"
	"github.com/invar-ops/invar/internal/report"
)

// probeFiles writes the reports that were asked for, and on GitHub those that
// its runner takes without being asked: annotations and the step's summary.
func probeFiles(c *cli.Context, res probe.Result) error {
	for name, write := range map[string]func(io.Writer) error{
		"junit": func(w io.Writer) error { return probe.WriteJUnit(w, res) },
		"sarif": func(w io.Writer) error { return probe.WriteSARIF(w, res, release, workflowFile()) },
		"tap":   func(w io.Writer) error { return probe.WriteTAP(w, res) },
	} {
		if file := c.String(name); file != "" {
			if err := writeFile("--"+name, absolute(file), write); err != nil {
				return err
			}
		}
	}
	if !onGitHub() {
		return nil
	}
	if err := probe.WriteAnnotations(c.App.ErrWriter, res); err != nil {
		return err
	}
	file := os.Getenv("GITHUB_STEP_SUMMARY")
	if file == "" {
		return nil
	}
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return report.Problemf(report.Failed, "GITHUB_STEP_SUMMARY: %w", err)
	}
	err = probe.WriteSummary(f, res)
	return errors.Join(err, f.Close())
}

// workflowFile is the file of the workflow that runs on GitHub, relative to its
// repository: "me/repo/.github/workflows/check.yml@refs/heads/main" names it.
func workflowFile() string {
	ref := os.Getenv("GITHUB_WORKFLOW_REF")
	if !onGitHub() || ref == "" {
		return ""
	}
	file, _, _ := strings.Cut(ref, "@")
	parts := strings.SplitN(file, "/", 3)
	return parts[len(parts)-1]
}

// probeBaseline records the baseline where there is none yet, and reports what
// drifted from it otherwise.
func probeBaseline(c *cli.Context, res probe.Result) error {
	file := c.String("baseline")
	if file == "" {
		return nil
	}
	file = absolute(file)
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		if err := writeFile("--baseline", file, res.Installed.Write); err != nil {
			return err
		}
		fmt.Fprintf(c.App.ErrWriter, "baseline recorded in %s\n", file)
		return nil
	}
	if err != nil {
		return report.Problemf(report.Failed, "--baseline: %w", err)
	}
	defer func() { _ = f.Close() }()
	want, err := probe.ReadBaseline(f)
	if err != nil {
		return report.Problemf(report.Failed, "--baseline %s: %w", file, err).WithHint("remove the file to record a new one")
	}
	drifts := want.Drifts(res.Installed)
	if len(drifts) == 0 {
		return nil
	}
	var wants, gots []string
	for _, d := range drifts {
		wants, gots = append(wants, d.What+" "+d.Want), append(gots, d.What+" "+d.Got)
	}
	return report.Problemf(report.CheckFailed, "%s from the baseline", plural(len(drifts), "drift", "drifts")).
		WithWant(strings.Join(wants, "\n"), strings.Join(gots, "\n")).
		WithHint("build the version of the baseline, or remove %s and probe again to record a new one", file)
}

// writeFile replaces file in one step; the error names the flag that asked for it.
func writeFile(flag, file string, write func(io.Writer) error) error {
	if err := replaceFile(file, write); err != nil {
		return report.Problemf(report.Failed, "%s: %w", flag, err)
	}
	return nil
}
