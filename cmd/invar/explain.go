package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/invar-ops/invar/internal/explain"
	"github.com/invar-ops/invar/internal/report"
)

func explainCommand() *cli.Command {
	return &cli.Command{
		Name: "explain", Usage: "a failed log: first real cause, and the fix",
		Description: "Reads a build, install, import or serve log and says what really went wrong first.\n" +
			"Exit code 0: a cause was found, or the log shows success; 6: the cause is not in this\nexcerpt. With the id of a rule it prints that rule.",
		UsageText: "invar explain build.log\npip install . 2>&1 | invar explain -\ninvar explain --list\ninvar explain header-missing",
		ArgsUsage: "[FILE|-|RULE]",
		Flags:     []cli.Flag{jsonFlag(), &cli.BoolFlag{Name: "list", Usage: "list the rules"}},
		Action:    runExplain,
	}
}

func runExplain(c *cli.Context) error {
	if err := argsAtMost(c, 1); err != nil {
		return err
	}
	name := c.Args().First()
	if c.Bool("list") {
		return listRules(c)
	}
	if _, err := os.Stat(name); err != nil && name != "" && name != "-" {
		if r, ok := explain.Lookup(name); ok {
			return showRule(c, r)
		}
	}
	in, closeIn, err := input(name)
	if err != nil {
		return err
	}
	defer closeIn()
	d, err := explain.Log(c.Context, in, explain.Options{})
	if err == nil && d.Code() != report.Done {
		err = report.Problemf(d.Code(), "the cause is not in this excerpt (%d lines read)", d.Lines).
			WithHint("%s", or(strings.Join(d.Bring, "; "), "bring the log from its beginning, or the first lines that say error"))
	}
	if c.Bool("json") {
		return printed(c, "explain", d, err)
	}
	showDiagnosis(c.App.Writer, d)
	return err
}

// input is the file called name, or stdin.
func input(name string) (io.Reader, func(), error) {
	if name == "" || name == "-" {
		return os.Stdin, func() {}, nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, nil, report.Problemf(report.Failed, "log: %w", err).WithHint("invar explain --list lists the rules")
	}
	return f, func() { _ = f.Close() }, nil
}

func showDiagnosis(w io.Writer, d explain.Diagnosis) {
	switch d.Verdict {
	case explain.Succeeded:
		fmt.Fprintf(w, "the log shows success (%d lines)\n", d.Lines)
		return
	case explain.Found:
	default:
		showElsewhere(w, d)
		return
	}
	cause := d.Cause
	if d.Likely {
		cause += " (likely; the text does not prove it)"
	}
	fmt.Fprintf(w, "cause   %s\nrule    %s\n", cause, d.Rule)
	for _, e := range d.Evidence {
		fmt.Fprintf(w, "line    %d: %s\n", e.Line, e.Text)
	}
	for _, ch := range d.Check {
		fmt.Fprintf(w, "check   %s\n", ch)
	}
	if f := d.Fix; f != nil {
		fmt.Fprintf(w, "fix     %s\n", f.Do)
		for _, kind := range []struct {
			name string
			list []string
		}{{"run", f.Run}, {"apt", f.Apt}, {"dnf", f.Dnf}, {"pip", f.Pip}} {
			for _, x := range kind.list {
				fmt.Fprintf(w, "  %-5s %s\n", kind.name, x)
			}
		}
	}
	for _, s := range d.See {
		fmt.Fprintf(w, "see     %s\n", s)
	}
	for _, o := range d.Also {
		fmt.Fprintf(w, "also    line %d: %s (%s)\n", o.Line, o.Cause, o.Rule)
	}
}

// showElsewhere prints what was seen of a failure whose cause is not in the log.
func showElsewhere(w io.Writer, d explain.Diagnosis) {
	if d.Cause != "" {
		fmt.Fprintf(w, "seen    %s\n", d.Cause)
	}
	for _, e := range d.Evidence {
		fmt.Fprintf(w, "line    %d: %s\n", e.Line, e.Text)
	}
	for _, b := range d.Bring {
		fmt.Fprintf(w, "bring   %s\n", b)
	}
}

func listRules(c *cli.Context) error {
	rules, err := explain.Rules()
	if c.Bool("json") {
		return printed(c, "explain.list", rules, err)
	}
	for _, r := range rules {
		fmt.Fprintf(c.App.Writer, "%-34s %-12s %s\n", r.ID, r.Family, r.Summary())
	}
	return err
}

func showRule(c *cli.Context, r explain.Rule) error {
	if c.Bool("json") {
		return printed(c, "explain.rule", r, nil)
	}
	w := c.App.Writer
	fmt.Fprintf(w, "rule    %s (%s)\ncause   %s\nfix     %s\n", r.ID, r.Family, r.Summary(), r.Fix.Do)
	for _, s := range r.See {
		fmt.Fprintf(w, "see     %s\n", s)
	}
	fmt.Fprintf(w, "example\n  %s\n", strings.ReplaceAll(strings.TrimSpace(r.Example), "\n", "\n  "))
	return nil
}
