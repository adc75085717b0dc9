package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/verify"
	"github.com/invar-ops/invar/internal/verify/judge"
	"github.com/invar-ops/invar/internal/verify/page"
	"github.com/invar-ops/invar/internal/verify/workload"
)

// showVerify writes the reports that were asked for, then the one on stdout.
func showVerify(c *cli.Context, command string, res *judge.Result, err error) error {
	if res == nil {
		if c.Bool("json") {
			return printed(c, command, nil, err)
		}
		return err
	}
	for _, f := range []struct {
		flag  string
		write func(io.Writer, judge.Result) error
	}{{"html", page.Write}, {"junit", verify.WriteJUnit}} {
		if file := c.String(f.flag); file != "" {
			if werr := replaceFile(absolute(file), func(w io.Writer) error { return f.write(w, *res) }); werr != nil {
				return report.Problemf(report.Failed, "--%s: %w", f.flag, werr)
			}
		}
	}
	if c.Bool("json") {
		return printed(c, command, res, err)
	}
	verifyText(c.App.Writer, *res)
	return err
}

func verifyText(w io.Writer, res judge.Result) {
	s := res.Server
	fmt.Fprintf(w, "%s\n", serverLine(s))
	fmt.Fprintf(w, "%-40s %8s %8s  %s\n", "workload", "pairs", "differ", "first difference")
	for _, x := range res.Workloads {
		fmt.Fprintf(w, "%-40s %8d %8d  %s\n", cut(x.Name+": "+x.About, 40), x.Pairs, x.Differ, firstDifference(x))
	}
	for _, d := range res.ByDim {
		fmt.Fprintf(w, "%-40s %8d %8d\n", "  of them: "+d.Dimension.Text(), d.Pairs, d.Differ)
	}
	for _, c := range res.Coverage {
		word := "covered"
		if !c.Shown {
			word = "not covered"
		}
		fmt.Fprintf(w, "%-11s  %s: %s\n", word, c.Name, c.Got)
	}
	for _, p := range res.Power {
		fmt.Fprintf(w, "power        %s: missed with a chance of %.3g %% (%d tries)\n", p.Defect, 100*p.Miss, p.Tries)
	}
	if c := res.Control; c != nil {
		fmt.Fprintf(w, "control      %s: %d of %d requests, %d of %d pairs differ\n", c.Server, c.Changed, c.Requests, c.Differ, c.Pairs)
	}
	for _, n := range res.Verdict.Notes {
		fmt.Fprintf(w, "note         %s\n", n.Text)
	}
	for _, r := range res.Verdict.Reasons {
		fmt.Fprintf(w, "reason       %s\n", r.Text)
	}
	for _, x := range res.Suspects {
		fmt.Fprintf(w, "suspect      %s (%s)\n  try        %s\n", x.Text, x.Reference, x.Try)
	}
	for _, l := range res.Logs {
		fmt.Fprintf(w, "log          %s\n", l)
	}
	word := string(res.Verdict.Word)
	fmt.Fprintf(w, "verdict      %s\n%s\n", paint(w, colourWord(res.Verdict), word), res.Verdict.Sentence)
}

func colourWord(v judge.Verdict) string {
	switch v.Code() {
	case report.Done:
		return "pass"
	case report.Inconclusive:
		return "inconclusive"
	}
	return "fail"
}

func serverLine(s judge.Server) string {
	parts := []string{s.Model}
	if s.URL != "" {
		parts = append(parts, s.URL)
	}
	if s.Version != "" {
		parts = append(parts, s.Engine+" "+s.Version)
	} else {
		parts = append(parts, "engine "+s.Engine)
	}
	if n := len(s.Ranks); n > 1 {
		parts = append(parts, fmt.Sprintf("%d engines", n))
	}
	return strings.Join(append(parts, fmt.Sprintf("%d start(s)", s.Lifetimes)), ", ")
}

func firstDifference(w judge.Workload) string {
	if len(w.Details) == 0 {
		return ""
	}
	d := w.Details[0]
	s := fmt.Sprintf("request %d, token %d: %s", d.Index, d.First.Position, d.First.Kind)
	if d.First.MaxDelta > 0 {
		s += fmt.Sprintf(" %.1e", d.First.MaxDelta)
	}
	return s
}

func cut(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}

// planVerify prints what would be sent.
func planVerify(c *cli.Context) error {
	ws, err := workload.Select(c.String("preset"), c.StringSlice("workload"), c.Int("requests"))
	if c.String("url") != "" {
		ws = slices.DeleteFunc(ws, workload.Workload.Fresh) // that server has answered others already
	}
	if c.Bool("json") {
		if err != nil {
			return printed(c, "verify.plan", nil, err)
		}
		return printed(c, "verify.plan", ws, nil)
	}
	if err != nil {
		return err
	}
	w, total := c.App.Writer, 0
	for _, x := range ws {
		n := x.Requests()
		total += n
		fmt.Fprintf(w, "%-16s %5d requests  %s (%s)\n", x.Name, n, x.About, x.Source)
		for _, r := range x.Runs {
			line := fmt.Sprintf("  %d x %s: %s, cache %s", r.Repeat, r.Name, r.Mode, r.Cache)
			if r.Extra > 0 {
				line += fmt.Sprintf(", %d %s fillers", r.Extra, r.Fillers)
			}
			fmt.Fprintln(w, line)
		}
	}
	fmt.Fprintf(w, "%d requests a start, and a few to warm up\n", total)
	return nil
}
