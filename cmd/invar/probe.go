package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/invar-ops/invar/internal/probe"
	"github.com/invar-ops/invar/internal/report"
)

func probeCommand() *cli.Command {
	return &cli.Command{
		Name: "probe", Usage: "is the installation good, level by level",
		Description: "Levels: 1 files, 2 import, 3 operators, 4 wiring, 5 kernels, 6 numbers,\n" +
			"7 batch invariance. A level that cannot run is skipped with the reason and never\n" +
			"counts as passed. Exit code 5: a level failed. 6: one is inconclusive, or one that\n" +
			"--require asks for was skipped.",
		UsageText: "invar probe                    all levels\n" +
			"invar probe --level 1          files only, no Python is started\n" +
			"invar probe --require 7 --junit probe.xml\n" +
			"invar probe cpu --full         the long sweep of level 7\n" +
			"invar probe --root DIR         an unpacked root file system, from outside\n" +
			"invar probe --image REF        an image, without running it; also an archive or an OCI layout",
		ArgsUsage: "[TARGET]",
		Flags: append([]cli.Flag{
			prefixFlag(), pythonFlag(), jsonFlag(),
			&cli.IntFlag{Name: "level", Usage: "run levels 1 to `N` (default 7)"},
			&cli.IntFlag{Name: "require", Usage: "levels 1 to `N` must pass"},
			&cli.BoolFlag{Name: "full", Usage: "the long sweep of level 7 (minutes)"},
			&cli.StringFlag{Name: "junit", Usage: "also write the checks as JUnit XML to `FILE` (GitLab's report, too)"},
			&cli.StringFlag{Name: "sarif", Usage: "also write the checks as SARIF to `FILE`"},
			&cli.StringFlag{Name: "tap", Usage: "also write the checks as TAP to `FILE`"},
			&cli.StringFlag{Name: "baseline", Usage: "record what is installed and proved in `FILE`, or compare with it when it is there"},
			&cli.StringFlag{Name: "record", Usage: "also write what was found, and what the host says, to the new folder `DIR`, without names of users and hosts"},
			cannFlag(""),
			&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "no progress"},
		}, outsideFlags()...),
		Action: runProbe, BashComplete: completeTargets,
	}
}

func runProbe(c *cli.Context) error {
	if err := argsAtMost(c, 1); err != nil {
		return err
	}
	for _, name := range []string{"level", "require"} {
		if n := c.Int(name); c.IsSet(name) && (n < 1 || n > probe.Deepest) {
			return report.Usagef("--%s %d: want 1 to %d", name, n, probe.Deepest)
		}
	}
	s, err := session(c)
	if err != nil {
		return err
	}
	dir, err := recordFolder(c)
	if err != nil {
		return err
	}
	o := probe.Options{
		Prefix: s.Prefix, Python: c.String("python"), Target: c.Args().First(), Level: c.Int("level"), Require: c.Int("require"),
		Full: c.Bool("full"), Runner: s.Runner, Env: s.Env, CANN: local(c.String("cann")), Progress: barsOnly{newProgress(c.App.ErrWriter, c.Bool("quiet"))},
	}
	var res probe.Result
	outside := c.IsSet("root") || c.IsSet("image") || c.IsSet("platform")
	if outside {
		res, err = runProbeOutside(c, o)
	} else {
		res, err = probe.Run(c.Context, o)
	}
	if !outside {
		retellChecks(c, &res)
	}
	if len(res.Levels) > 0 {
		if werr := probeFiles(c, res); werr != nil {
			return werr
		}
		if derr := probeBaseline(c, res); err == nil {
			err = derr
		} else if derr != nil { // the level that failed decides the exit code
			showError(c.Context, c.App.ErrWriter, derr)
		}
	}
	if dir != "" {
		if rerr := record(c, s, dir, res); rerr != nil {
			return rerr
		}
	}
	if c.Bool("json") {
		if len(res.Levels) == 0 { // it did not come to a probe
			return printed(c, "probe", nil, err)
		}
		return printed(c, "probe", res, err)
	}
	showProbe(c.App.Writer, res)
	return err
}

func showProbe(w io.Writer, res probe.Result) {
	if len(res.Levels) == 0 {
		return
	}
	fmt.Fprintf(w, "%s, generation %d, %s%s\n", res.Target, res.Generation, res.Python, inRoot(res))
	for _, l := range res.Levels {
		showLevel(w, l, res.Checks)
	}
	fmt.Fprintf(w, "proved to level %d of %d\n", res.Proved, probe.Deepest)
	for _, l := range res.Summary {
		if !strings.HasPrefix(l, "level ") { // what did not pass stands above
			fmt.Fprintln(w, l)
		}
	}
	for _, o := range res.Observations {
		if o.Name != "torch" && o.Name != "not routed" && o.Name != "traceback" {
			fmt.Fprintf(w, "%s: %s\n", o.Name, o.Text)
		}
	}
}

func inRoot(res probe.Result) string {
	switch {
	case res.Image != nil:
		return fmt.Sprintf(", in %s (%s, %.19s)", res.Image.Ref, res.Image.Platform, or(res.Image.Digest, res.Image.ID))
	case res.Root != "":
		return ", in " + res.Root
	}
	return ""
}

func showLevel(w io.Writer, l probe.Level, checks []report.Check) {
	word := paint(w, string(l.Status), fmt.Sprintf("%-13s", l.Status))
	if l.Status == report.Skip {
		fmt.Fprintf(w, "%d %-18s %s %s\n", l.Level, l.Name, word, l.Reason)
		return
	}
	fmt.Fprintf(w, "%d %-18s %s %7s\n", l.Level, l.Name, word, elapsed(l.Elapsed))
	for _, c := range checks {
		if c.Level == l.Level && c.Status != report.Pass {
			showCheck(w, c)
		}
	}
}

func showCheck(w io.Writer, c report.Check) {
	fmt.Fprintf(w, "    %s\n", c.Name)
	for _, row := range [][2]string{{"want", c.Want}, {"got", c.Got}, {"reason", c.Reason}, {"try", c.Hint}} {
		if row[1] != "" {
			fmt.Fprintf(w, "      %-7s %s\n", row[0], strings.ReplaceAll(row[1], "\n", "\n              "))
		}
	}
}

// barsOnly shows bars while they run and no line a step: the table on stdout
// says it all.
type barsOnly struct{ report.Progress }

func (b barsOnly) Start(stage, name string, total int64) report.Step {
	if p, ok := b.Progress.(*progress); !ok || !p.bars || total == 0 {
		return report.Discard.Start(stage, name, total)
	}
	return passing{b.Progress.Start(stage, name, total).(*step)}
}

// passing is a step whose bar goes away without a line.
type passing struct{ *step }

func (p passing) Done(string) { p.away() }
func (p passing) Skip(string) { p.away() }
func (p passing) Fail(error)  { p.away() }

func (p passing) away() {
	p.p.mu.Lock()
	defer p.p.mu.Unlock()
	p.rub()
}
