package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/invar-ops/invar/internal/host"
	"github.com/invar-ops/invar/internal/invar"
	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/run"
)

func detectCommand() *cli.Command {
	return &cli.Command{
		Name: "detect", Usage: "which SoC, on what evidence",
		Description: "Asks every source at once and judges what they said. Exit codes: 0 a verdict,\n" +
			"3 a chip that is known and refused, 6 unknown, in conflict, or not to be concluded.\n" +
			"--soc takes a SoC (ascend910b4, ascend910_9392, ascend950pr_9579, sm_90), a target\n" +
			"(ascend910b, 910b, a3), or cpu; SOC_VERSION is read as well and overrules nothing.",
		UsageText: "invar detect\ninvar detect --evidence\ninvar detect --field soc\n" +
			"invar detect --record DIR          later, anywhere: invar detect --replay DIR\n" +
			"npu-smi info | invar detect --from -",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "soc", Usage: "decide by hand: the `SOC` to build for"},
			&cli.BoolFlag{Name: "evidence", Usage: "print what each source said and what it counted for"},
			jsonFlag(),
			&cli.StringFlag{Name: "field", Usage: "print one `NAME` of the verdict only: " + strings.Join(fieldNames(), ", ")},
			&cli.BoolFlag{Name: "github-output", Usage: "also append the fields to the file that GITHUB_OUTPUT names"},
			&cli.StringFlag{Name: "record", Usage: "save what every source said to the new folder `DIR`, with identities masked"},
			&cli.StringFlag{Name: "replay", Usage: "judge the machine that was recorded in `DIR`"},
			&cli.StringFlag{Name: "from", Usage: "judge the pasted output of a tool in `FILE`, - for stdin"},
			&cli.StringFlag{Name: "root", Usage: "read the unpacked system in `DIR`; no tool is started"},
		},
		Action: runDetect,
	}
}

// detectResult is the result in the JSON of detect.
type detectResult struct {
	Verdict host.Verdict `json:"verdict"`
	Facts   host.Facts   `json:"facts"`
	Tools   *invar.Tools `json:"tools,omitempty"`
}

func runDetect(c *cli.Context) error {
	if err := detectUsage(c); err != nil {
		return err
	}
	facts, err := detectFacts(c)
	if err != nil {
		return err
	}
	v := host.Judge(facts)
	if v.Rule == "option-not-known" {
		return report.Usagef("%s", v.Reason).WithHint("invar detect --help")
	}
	if dir := c.String("record"); dir != "" {
		if err := host.Record(dir, facts); err != nil {
			return fmt.Errorf("recording: %w", err)
		}
		fmt.Fprintf(os.Stderr, "recorded %d answers in %s\n", len(facts.Evidence), dir)
	}
	if c.Bool("github-output") {
		if err := appendOutputs(os.Getenv("GITHUB_OUTPUT"), v); err != nil {
			return err
		}
	}
	tools, err := detectTools(c)
	if err != nil {
		return err
	}
	switch name := c.String("field"); {
	case name != "":
		return printField(c.App.Writer, v, name)
	case c.Bool("json"):
		return printed(c, "detect", detectResult{v, facts, tools}, v.Err())
	}
	w := c.App.Writer
	fmt.Fprintln(w, verdictLine(v, facts))
	if c.Bool("evidence") {
		showEvidence(w, v)
		showTools(w, tools)
	}
	showVerdictNotes(w, v, facts)
	return v.Err()
}

// detectUsage refuses combinations that contradict each other.
func detectUsage(c *cli.Context) error {
	if err := argsAtMost(c, 0); err != nil {
		return err
	}
	var given []string
	for _, n := range []string{"replay", "from", "root"} {
		if c.IsSet(n) {
			given = append(given, "--"+n)
		}
	}
	if len(given) > 1 {
		return report.Usagef("%s name different machines; want one of them", strings.Join(given, " and "))
	}
	if c.IsSet("record") && (c.IsSet("from") || c.IsSet("replay")) {
		return report.Usagef("--record saves this machine; it does not go with %s", given[0])
	}
	if n := c.String("field"); n != "" && fieldOf(host.Verdict{}, n) == nil {
		return report.Usagef("unknown field %q", n).WithWant("one of "+strings.Join(fieldNames(), ", "), "")
	}
	if c.IsSet("field") && (c.Bool("json") || c.Bool("evidence")) {
		return report.Usagef("--field prints one value; it does not go with --json or --evidence")
	}
	if c.Bool("github-output") && os.Getenv("GITHUB_OUTPUT") == "" {
		return report.Usagef("--github-output: GITHUB_OUTPUT is not set").WithHint("it is set in GitHub Actions; elsewhere use --json or --field")
	}
	return nil
}

func detectFacts(c *cli.Context) (host.Facts, error) {
	soc := c.String("soc")
	switch {
	case c.IsSet("from"):
		f, err := factsFrom(c.App.Reader, c.String("from"))
		return f.With(soc), err
	case c.IsSet("replay"):
		f, err := host.Replay(c.String("replay"))
		return f.With(soc), err
	}
	return detectHost(c.Context, c.String("root"), soc, c.Bool("evidence") || c.IsSet("record"))
}

// detectHost asks this machine, or reads another root. whole asks everything.
func detectHost(ctx context.Context, root, soc string, whole bool) (host.Facts, error) {
	o := host.Options{Root: root, SoC: soc, Env: os.Environ(), Runner: run.System{}, Whole: whole}
	if root != "" && root != "/" {
		st, err := os.Stat(root)
		if err != nil {
			return host.Facts{}, err
		}
		if !st.IsDir() {
			return host.Facts{}, report.Usagef("--root %s is no folder", root)
		}
		// Tools and variables are this machine's, not that root's.
		o.Runner, o.Env = nil, nil
	}
	return host.Detect(ctx, o)
}

func factsFrom(stdin io.Reader, name string) (host.Facts, error) {
	if name == "-" {
		return host.From(stdin)
	}
	f, err := os.Open(name)
	if err != nil {
		return host.Facts{}, err
	}
	defer func() { _ = f.Close() }()
	return host.From(f)
}

// detectFields are the values that --field and --github-output print.
var detectFields = []struct {
	name string
	of   func(host.Verdict) string
}{
	{"soc", func(v host.Verdict) string { return v.SoC }},
	{"family", func(v host.Verdict) string { return v.Family }},
	{"target", func(v host.Verdict) string { return v.Target }},
	{"state", func(v host.Verdict) string { return v.State }},
	{"sku", func(v host.Verdict) string { return v.SKU }},
	{"count", func(v host.Verdict) string { return strconv.Itoa(v.Count) }},
	{"driver", func(v host.Verdict) string { return v.Driver }},
	{"cuda", func(v host.Verdict) string { return v.CUDA }},
	{"rule", func(v host.Verdict) string { return v.Rule }},
}

func fieldNames() []string {
	var out []string
	for _, f := range detectFields {
		out = append(out, f.name)
	}
	return out
}

func fieldOf(v host.Verdict, name string) *string {
	for _, f := range detectFields {
		if f.name == name {
			s := f.of(v)
			return &s
		}
	}
	return nil
}

// printField prints one value, and nothing where it is not known: a script
// must not go on with an empty word.
func printField(w io.Writer, v host.Verdict, name string) error {
	s := *fieldOf(v, name)
	if s == "" {
		if err := v.Err(); err != nil {
			return err
		}
		return report.Problemf(report.Inconclusive, "%s is not known: %s", name, strings.Join(v.Unknown, "; ")).WithHint("invar detect --evidence")
	}
	fmt.Fprintln(w, s)
	return v.Err()
}

// appendOutputs writes the known fields for later steps of a GitHub job.
func appendOutputs(file string, v host.Verdict) error {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("GITHUB_OUTPUT: %w", err)
	}
	var b strings.Builder
	for _, x := range detectFields {
		fmt.Fprintf(&b, "%s=%s\n", x.name, strings.Join(strings.Fields(x.of(v)), " "))
	}
	_, err = f.WriteString(b.String())
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("GITHUB_OUTPUT: %w", err)
	}
	return nil
}
