package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/invar-ops/invar/internal/deployment"
	"github.com/invar-ops/invar/internal/lint"
	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/rootfs"
)

func lintCommand() *cli.Command {
	return &cli.Command{
		Name: "lint", Usage: "what in a server's start stands against batch invariance",
		Description: "Reads a command line, a shell script, a compose file, Kubernetes manifests, a systemd unit,\n" +
			"a running process or the LLM(...) call of a Python file (parsed, never run) and names settings\n" +
			"that are missing and known defects. Exit code 5: something stands against it; 6: no server was\n" +
			"found, or device or version are unknown and nothing sure was found.",
		UsageText: "invar lint -- vllm serve Qwen/Qwen3-8B --tensor-parallel-size 4\n" +
			"invar lint --device cuda --arch 9.0 --engine-version 0.26.0 start.sh\n" +
			"invar lint compose.yaml --sarif lint.sarif\n" +
			"invar lint --pid 4711",
		ArgsUsage: "[FILE|-|-- COMMAND...]",
		Flags: []cli.Flag{
			jsonFlag(), pythonFlag(),
			&cli.IntFlag{Name: "pid", Usage: "read the running process `PID`"},
			&cli.StringFlag{Name: "engine-version", Usage: "version of vLLM or SGLang, as 0.27.1"},
			&cli.StringFlag{Name: "device", Usage: "cuda, ascend or cpu, when the text does not say it"},
			&cli.StringFlag{Name: "arch", Usage: "compute capability as 9.0, or ascend310p"},
			&cli.StringFlag{Name: "family", Usage: "of the model: dense, moe, mla, gdn, mamba2, hybrid (comma-separated), when its name does not say it"},
			&cli.StringFlag{Name: "nccl", Usage: "version of NCCL"},
			&cli.BoolFlag{Name: "all", Usage: "show what unknown facts leave open, too"},
			&cli.StringFlag{Name: "sarif", Usage: "also write the findings as SARIF to `FILE`"},
		},
		Action: runLint,
	}
}

func runLint(c *cli.Context) error {
	given := lint.Given{Version: c.String("engine-version"), Device: c.String("device"), Arch: c.String("arch"), Family: c.String("family"), NCCL: c.String("nccl")}
	if err := checkGiven(given); err != nil {
		return err
	}
	found, file, err := lintInput(c)
	if err != nil {
		return err
	}
	starts, err := lint.Check(found, given, c.Bool("all"))
	if err != nil {
		return err
	}
	verdict := lintVerdict(starts)
	if out := c.String("sarif"); out != "" {
		err := replaceFile(absolute(out), func(w io.Writer) error { return lint.WriteSARIF(w, starts, file, release) })
		if err != nil {
			return report.Problemf(report.Failed, "--sarif: %w", err)
		}
	}
	if c.Bool("json") {
		return printed(c, "lint", map[string]any{"starts": starts}, verdict)
	}
	for i, s := range starts {
		if i > 0 {
			fmt.Fprintln(c.App.Writer)
		}
		showStart(c.App.Writer, s)
	}
	return verdict
}

func checkGiven(g lint.Given) error {
	switch g.Device {
	case "", "cuda", "ascend", "cpu":
	default:
		return report.Usagef("--device %q", g.Device).WithWant("cuda, ascend or cpu", g.Device)
	}
	return nil
}

// lintInput reads what is to be judged: --pid, a command after "--", or a file.
func lintInput(c *cli.Context) (found []deployment.Deployment, file string, err error) {
	args := c.Args().Slice()
	if pid := c.Int("pid"); pid != 0 {
		if len(args) > 0 {
			return nil, "", report.Usagef("--pid and %q: want one of them", args[0])
		}
		root, err := rootfs.Open("/")
		if err != nil {
			return nil, "", err
		}
		d, err := deployment.Process(root, pid)
		if err != nil {
			return nil, "", report.Problemf(report.Failed, "%w", err).WithHint("ps -ef | grep vllm")
		}
		return []deployment.Deployment{d}, "", nil
	}
	switch {
	case len(args) == 0:
		return nil, "", report.Usagef("lint needs something to read").WithWant("a file, - or -- COMMAND", "nothing").WithHint("invar lint --help")
	case len(args) > 1 || !isFile(args[0]) && args[0] != "-" && strings.Contains(args[0], " "):
		if len(args) == 1 { // one quoted command
			return deployment.Shell("command line", args[0]), "", nil
		}
		return deployment.Command("command line", args), "", nil
	}
	name := args[0]
	var b []byte
	if name == "-" {
		name = "standard input"
		b, err = io.ReadAll(io.LimitReader(os.Stdin, maxLint))
	} else {
		b, err = os.ReadFile(name)
		file = name
	}
	if err != nil {
		return nil, "", report.Problemf(report.Failed, "%w", err).WithHint("name a file, - for standard input, or a command after --")
	}
	found, err = readDeployment(c.Context, c, name, b)
	return found, file, err
}

// maxLint bounds what is read from standard input, in bytes.
const maxLint = 8 << 20

func readDeployment(ctx context.Context, c *cli.Context, name string, b []byte) ([]deployment.Deployment, error) {
	if !deployment.IsPython(name, b) {
		return deployment.Read(name, b)
	}
	s, err := session(c)
	if err != nil {
		return nil, err
	}
	interpreter := "python3"
	if p := c.String("python"); p != "" {
		interpreter = p
	}
	return deployment.PythonFile(ctx, s.Runner, s.Env, interpreter, name, b)
}

func isFile(name string) bool {
	info, err := os.Stat(name)
	return err == nil && !info.IsDir()
}

// lintVerdict turns the findings into the exit code.
func lintVerdict(starts []lint.Start) error {
	if len(starts) == 0 {
		return report.Problemf(report.Inconclusive, "no start of a known engine was found").
			WithWant("vllm serve, python -m vllm.entrypoints.openai.api_server, LLM(...), or sglang.launch_server", "none").
			WithHint("invar lint -- vllm serve MODEL ...")
	}
	if n := lint.Against(starts); n > 0 {
		return report.Problemf(report.CheckFailed, "%s against batch invariance", plural(n, "finding", "findings")).
			WithHint("each finding names its fix")
	}
	for _, s := range starts {
		var missing []string
		if s.Facts.Values["device"] == "" {
			missing = append(missing, "--device")
		}
		if s.Facts.Version == "" {
			missing = append(missing, "--engine-version")
		}
		if len(missing) > 0 {
			return report.Problemf(report.Inconclusive, "nothing sure was found, and too little is known to say that there is nothing").
				WithWant("device and version", plural(s.Open, "rule", "rules")+" left open").WithHint("add %s", strings.Join(missing, " and "))
		}
	}
	return nil
}

func showStart(w io.Writer, s lint.Start) {
	fmt.Fprintln(w, s.Title())
	for _, p := range s.Problems {
		fmt.Fprintf(w, "  unreadable   %s\n", p)
	}
	for _, f := range s.Findings {
		word := f.Kind
		if !f.Sure {
			word = "possible"
		}
		fmt.Fprintf(w, "  %-12s %s (%s)\n", word, f.Title, f.ID)
		fmt.Fprintf(w, "      why      %s\n", f.Why)
		if f.Observed != "" {
			fmt.Fprintf(w, "      seen     %s%s\n", f.Observed, assumed(f))
		}
		if len(f.Unknown) > 0 {
			fmt.Fprintf(w, "      unknown  %s\n", strings.Join(f.Unknown, ", "))
		}
		fmt.Fprintf(w, "      fix      %s\n      see      %s, confidence %s\n", f.Fix, f.Reference, f.Confidence)
	}
	if len(s.Findings) == 0 {
		fmt.Fprintln(w, "  no finding")
	}
	if s.Open > 0 {
		fmt.Fprintf(w, "  %s left open by unknown facts: --all shows them\n", plural(s.Open, "rule", "rules"))
	}
}

func assumed(f lint.Finding) string {
	if len(f.Assumed) == 0 {
		return ""
	}
	return " (by default: " + strings.Join(f.Assumed, ", ") + ")"
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
