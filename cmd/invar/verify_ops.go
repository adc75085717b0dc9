package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/invar-ops/invar/internal/opcheck"
	"github.com/invar-ops/invar/internal/report"
)

func verifyOpsCommand() *cli.Command {
	return &cli.Command{
		Name: "ops", Usage: "does any bit of an operator depend on the batch",
		Description: "Calls operators with the same rows in batches of many sizes, at other places, beside\n" +
			"other neighbours, in other layouts, with other threads and on other instruction sets,\n" +
			"and compares bits of all pairs. Each case has a control: the same operator in an order\n" +
			"that follows the batch. A control that is not caught makes the case inconclusive.\n" +
			"Exit code 5: bits depend on the batch. 6: inconclusive.",
		UsageText: "invar verify ops                                    all operators of the installed target\n" +
			"invar verify ops --op mm --op rms_norm              some of them\n" +
			"invar verify ops --op torch:mm --dtype float32      torch's own\n" +
			"invar verify ops --op ops.py:my_norm --family norm  a function of a file\n" +
			"invar verify ops --preset rmsnorm-48391             a check that has a name\n" +
			"invar verify ops --list                             families and presets",
		Flags: []cli.Flag{
			prefixFlag(), pythonFlag(), jsonFlag(),
			&cli.StringSliceFlag{Name: "op", Usage: "`OPERATOR`: NAME of the target, MODULE:FUNCTION or FILE.py:FUNCTION; may be repeated"},
			&cli.StringFlag{Name: "preset", Usage: "a check that has a `NAME`"},
			&cli.StringFlag{Name: "family", Usage: "how the operators are called (default: by their names, else rows: one tensor in, a row out for each row)"},
			&cli.StringSliceFlag{Name: "dtype", Usage: "float32, bfloat16 or float16; may be repeated (default all)"},
			&cli.StringFlag{Name: "rows", Usage: "numbers of rows as `M,M,...`, and nothing else"},
			&cli.IntFlag{Name: "size", Usage: "length of the reduction"},
			&cli.IntFlag{Name: "columns", Usage: "columns of the result, where they are free"},
			&cli.BoolFlag{Name: "full", Usage: "the long sweep (minutes)"},
			&cli.StringFlag{Name: "out", Usage: "folder `DIR` for files that reproduce a difference", Value: "."},
			&cli.StringFlag{Name: "junit", Usage: "also write the cases as JUnit XML to `FILE`"},
			&cli.BoolFlag{Name: "list", Usage: "list families and presets, and stop"},
			&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "no progress"},
		},
		Action: runVerifyOps,
	}
}

func runVerifyOps(c *cli.Context) error {
	if err := argsAtMost(c, 0); err != nil {
		return err
	}
	if c.Bool("list") {
		return listVerifyOps(c)
	}
	s, err := session(c)
	if err != nil {
		return err
	}
	o := opcheck.Options{
		Operators: c.StringSlice("op"), Preset: c.String("preset"), Family: c.String("family"),
		Size: c.Int("size"), Columns: c.Int("columns"), Dtypes: c.StringSlice("dtype"), Full: c.Bool("full"),
		Out: absolute(c.String("out")), Prefix: s.Prefix, Python: c.String("python"), Runner: s.Runner, Env: s.Env,
		Progress: barsOnly{newProgress(c.App.ErrWriter, c.Bool("quiet"))},
	}
	if o.Rows, err = numbers(c.String("rows")); err != nil {
		return err
	}
	res, err := opcheck.Run(c.Context, o)
	if file := c.String("junit"); file != "" && len(res.Cases) > 0 {
		if werr := writeFile("--junit", absolute(file), func(w io.Writer) error { return opcheck.WriteJUnit(w, res) }); werr != nil {
			return werr
		}
	}
	if c.Bool("json") {
		if len(res.Cases) == 0 {
			return printed(c, "verify.ops", nil, err)
		}
		return printed(c, "verify.ops", res, err)
	}
	showVerifyOps(c.App.Writer, res)
	return err
}

// numbers reads "1,2,33".
func numbers(text string) ([]int, error) {
	if text == "" {
		return nil, nil
	}
	var out []int
	for f := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(f))
		if err != nil || n < 1 {
			return nil, report.Usagef("--rows %s: want whole numbers from 1 on, as 1,2,33", text)
		}
		out = append(out, n)
	}
	if len(out) < 2 {
		return nil, report.Usagef("--rows %s: one number has nothing to be compared with", text)
	}
	return out, nil
}

func listVerifyOps(c *cli.Context) error {
	l, err := opcheck.List()
	if c.Bool("json") {
		return printed(c, "verify.ops.list", l, err)
	}
	if err != nil {
		return err
	}
	for _, f := range l.Families {
		fmt.Fprintf(c.App.Writer, "family %-15s %s\n", f.Name, strings.Join(f.Operators, ", "))
	}
	for _, p := range l.Presets {
		fmt.Fprintf(c.App.Writer, "preset %-15s %s\n", p.Name, p.Title)
	}
	return nil
}

func showVerifyOps(w io.Writer, r opcheck.Result) {
	if len(r.Cases) == 0 {
		return
	}
	fmt.Fprintf(w, "%s, torch %s\n", r.Python, r.Torch)
	fmt.Fprintf(w, "%-44s %-9s %12s %10s  %s\n", "operator", "dtype", "pairs", "differ", "verdict")
	for _, g := range r.Groups() {
		verdict := string(g.Status)
		if g.Seeds > 1 {
			verdict += fmt.Sprintf(" in %d of %d seeds", g.Of, g.Seeds)
		}
		fmt.Fprintf(w, "%-44s %-9s %12d %10d  %s\n", g.Label, g.Dtype, g.Pairs, g.Differ, paint(w, string(g.Status), verdict))
		if g.Reason != "" {
			fmt.Fprintf(w, "    %s\n", strings.ReplaceAll(g.Reason, "; ", "\n    "))
		}
		switch rep := g.Reproducer; {
		case rep == nil:
		case rep.Confirmed:
			fmt.Fprintf(w, "    reproducer %s: %s\n", rep.File, strings.ReplaceAll(rep.Output, "\n", "; "))
		default:
			fmt.Fprintf(w, "    no reproducer: %s\n", rep.Reason)
		}
	}
	for _, l := range r.LeftOut {
		fmt.Fprintf(w, "not covered: %s\n", l)
	}
	fmt.Fprintf(w, "verdict: %s. %s\n", r.Verdict, r.Sentence)
}
