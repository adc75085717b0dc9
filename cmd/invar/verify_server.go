package main

import (
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/invar-ops/invar/internal/invar"
	"github.com/invar-ops/invar/internal/launch"
	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/verify"
)

func verifyServer() *cli.Command {
	return &cli.Command{
		Name: "server", Usage: "do the answers of an OpenAI-compatible server change with the batch",
		Description: "Sends the same requests alone, as one list, at once, staggered, beside long prefills and\n" +
			"extreme neighbours, with a cold and a warm prefix cache and to each data-parallel rank, and\n" +
			"compares token ids, logprobs and top lists of all pairs bit by bit. Nothing is sent twice\n" +
			"until it agrees. Exit code 0: invariant within the coverage that is printed; 5: answers\n" +
			"change; 6: this run cannot tell, with the reason; 1: the server died or refused.",
		UsageText: "invar verify server --url http://127.0.0.1:8000\n" +
			"invar verify server --launch \"vllm serve MODEL\" --lifetimes 3 --html report.html\n" +
			"invar verify server --url http://a:8000 --control-url http://b:8000 --strict\n" +
			"invar verify server --url http://a:8000 --preset pr-45683 --json >verify.json",
		Flags: append(verifyFlags(),
			&cli.StringFlag{Name: "url", Usage: "base `URL` of a running server"},
			&cli.StringFlag{Name: "launch", Usage: "`COMMAND` that starts the server; invar waits for it and stops it"},
			&cli.IntFlag{Name: "lifetimes", Value: 3, Usage: "starts of the server with --launch"},
			&cli.StringFlag{Name: "control-url", Usage: "`URL` of a server whose answers must change: without it the sensitivity is unknown"},
			&cli.StringFlag{Name: "control-launch", Usage: "`COMMAND` that starts such a server"},
			&cli.StringSliceFlag{Name: "rank-url", Usage: "`URL` of one data-parallel rank, once for each, where ranks have ports of their own"},
			&cli.StringFlag{Name: "model", Usage: "`NAME` of the model (default the first one offered)"},
			&cli.StringFlag{Name: "api-key-file", Usage: "`FILE` that holds the API key (default INVAR_API_KEY, OPENAI_API_KEY)"},
			&cli.StringFlag{Name: "ca", Usage: "PEM `FILE` with the certificate authority of the server"},
			&cli.DurationFlag{Name: "timeout", Value: 2 * time.Minute, Usage: "longest wait for one answer"},
			&cli.DurationFlag{Name: "start-timeout", Value: 10 * time.Minute, Usage: "longest wait for a start"},
			&cli.IntFlag{Name: "concurrency", Value: 256, Usage: "requests at once"},
			&cli.StringFlag{Name: "logs", Usage: "folder `DIR` for the logs of started servers (default the log folder of invar)"},
		),
		Action: runVerifyServer,
	}
}

// verifyFlags are those of every verification by answers.
func verifyFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "preset", Value: "full", Usage: "full, quick or pr-45683"},
		&cli.StringSliceFlag{Name: "workload", Usage: "one workload instead of a preset; may be repeated (--dry-run lists them)"},
		&cli.IntFlag{Name: "requests", Usage: "prompts of each workload, up to 10000 (default as the workload says)"},
		&cli.BoolFlag{Name: "strict", Usage: "what was not covered, and a missing control, make the verdict inconclusive"},
		&cli.StringFlag{Name: "state", Usage: "folder `DIR` that keeps every answer; a later call goes on there"},
		&cli.StringFlag{Name: "html", Usage: "also write the report as one HTML page to `FILE`"},
		&cli.StringFlag{Name: "junit", Usage: "also write the report as JUnit XML to `FILE`"},
		&cli.BoolFlag{Name: "dry-run", Usage: "print the workloads, send nothing"},
		&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "no progress"},
		prefixFlag(), jsonFlag(),
	}
}

func runVerifyServer(c *cli.Context) error {
	if err := argsAtMost(c, 0); err != nil {
		return err
	}
	if err := checkVerify(c); err != nil {
		return err
	}
	if c.Bool("dry-run") {
		return planVerify(c)
	}
	s, err := session(c)
	if err != nil {
		return err
	}
	o, err := verifyOptions(c, s)
	if err != nil {
		return err
	}
	res, err := verify.Server(c.Context, o)
	return showVerify(c, "verify.server", res, err)
}

// checkVerify refuses what cannot be meant, before anything is sent.
func checkVerify(c *cli.Context) error {
	switch {
	case (c.String("url") == "") == (c.String("launch") == ""):
		return report.Usagef("one of --url and --launch is needed").WithHint("invar verify server --url http://127.0.0.1:8000")
	case c.String("control-url") != "" && c.String("control-launch") != "":
		return report.Usagef("--control-url and --control-launch exclude each other")
	case c.IsSet("lifetimes") && c.String("launch") == "":
		return report.Usagef("--lifetimes needs --launch: invar cannot restart a server that it did not start")
	case c.Int("lifetimes") < 1 || c.Int("concurrency") < 2 || c.Duration("timeout") <= 0 || c.Duration("start-timeout") <= 0:
		return report.Usagef("--lifetimes wants 1 or more, --concurrency 2 or more, time limits more than 0")
	case len(c.StringSlice("rank-url")) == 1:
		return report.Usagef("--rank-url is needed once for each rank, so at least twice")
	}
	for _, name := range []string{"launch", "control-launch"} {
		if text := c.String(name); text != "" {
			if _, err := launch.Parse(text); err != nil {
				return err
			}
		}
	}
	return checkWorkloads(c)
}

func checkWorkloads(c *cli.Context) error {
	if n := c.Int("requests"); c.IsSet("requests") && (n < 2 || n > 10000) {
		return report.Usagef("--requests %d: want 2 to 10000", n)
	}
	if c.IsSet("preset") && len(c.StringSlice("workload")) > 0 {
		return report.Usagef("--preset and --workload exclude each other")
	}
	return nil
}

func verifyOptions(c *cli.Context, s invar.Session) (verify.Options, error) {
	o := verify.Options{
		URL: c.String("url"), Launch: c.String("launch"), Lifetimes: c.Int("lifetimes"),
		Control: c.String("control-url"), ControlLaunch: c.String("control-launch"), RankURLs: c.StringSlice("rank-url"),
		Model: c.String("model"), Timeout: c.Duration("timeout"), Patience: c.Duration("start-timeout"),
		Concurrency: c.Int("concurrency"), Preset: c.String("preset"), Workloads: c.StringSlice("workload"), Count: c.Int("requests"),
		Strict: c.Bool("strict"), Logs: s.LogDir(), Env: s.Env, Runner: s.Runner, Progress: s.Progress,
	}
	if dir := c.String("state"); dir != "" {
		o.State = absolute(dir)
	}
	if dir := c.String("logs"); dir != "" {
		o.Logs = absolute(dir)
	}
	if o.Launch != "" || o.ControlLaunch != "" {
		if !c.IsSet("logs") {
			o.Logs = filepath.Join(o.Logs, "verify-"+time.Now().Format("2006-01-02T15-04-05"))
		}
		if err := os.MkdirAll(o.Logs, 0o755); err != nil {
			return o, err
		}
	}
	var err error
	if o.Key, err = apiKey(c); err != nil {
		return o, err
	}
	o.Roots, err = authority(c.String("ca"))
	return o, err
}

// apiKey is never taken from the command line, which others can read.
func apiKey(c *cli.Context) (string, error) {
	file := c.String("api-key-file")
	if file == "" {
		return or(os.Getenv("INVAR_API_KEY"), os.Getenv("OPENAI_API_KEY")), nil
	}
	b, err := os.ReadFile(filepath.Clean(file))
	if err != nil {
		return "", report.Usagef("--api-key-file: %w", err)
	}
	return strings.TrimSpace(string(b)), nil
}

func authority(file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil
	}
	b, err := os.ReadFile(filepath.Clean(file))
	if err != nil {
		return nil, report.Usagef("--ca: %w", err)
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(b) {
		return nil, report.Usagef("--ca %s: %w", file, fmt.Errorf("no certificate in PEM form"))
	}
	return pool, nil
}
