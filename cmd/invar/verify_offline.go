package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/invar-ops/invar/internal/python"
	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/run"
	"github.com/invar-ops/invar/internal/verify"
)

func verifyOffline() *cli.Command {
	return &cli.Command{
		Name: "offline", Usage: "the same for LLM.generate of vLLM, without a server",
		Description: "Starts vllm.LLM in a process of its own and asks it the same alone and in one call of\n" +
			"generate, with a cold and a warm prefix cache. Exit codes as of invar verify server.",
		UsageText: "invar verify offline --model MODEL --python ENV\n" +
			"invar verify offline --model MODEL --arg dtype=float32 --arg max_num_seqs=32 --preset pr-45683\n" +
			"INVAR_BATCH_INVARIANT=1 invar verify offline --model MODEL --control-env INVAR_BATCH_INVARIANT=0",
		Flags: append(verifyFlags(), pythonFlag(),
			&cli.StringFlag{Name: "model", Usage: "folder or `NAME` of the model"},
			&cli.StringSliceFlag{Name: "arg", Usage: "`NAME=VALUE` of LLM(...), the value as JSON or text; may be repeated"},
			&cli.IntFlag{Name: "lifetimes", Value: 1, Usage: "starts of the engine"},
			&cli.StringSliceFlag{Name: "control-env", Usage: "`KEY=VALUE` that switches invariance off for a control; may be repeated"},
			&cli.StringFlag{Name: "logs", Usage: "folder `DIR` for the log of the engine (default the log folder of invar)"},
		),
		Action: runVerifyOffline,
	}
}

func runVerifyOffline(c *cli.Context) error {
	if err := argsAtMost(c, 0); err != nil {
		return err
	}
	if err := checkWorkloads(c); err != nil {
		return err
	}
	switch {
	case c.String("model") == "":
		return report.Usagef("--model is needed").WithHint("invar verify offline --model FOLDER")
	case c.String("state") != "":
		return report.Usagef("--state is for servers: an engine that ended cannot be asked on")
	case c.Int("lifetimes") < 1:
		return report.Usagef("--lifetimes wants 1 or more")
	}
	if c.Bool("dry-run") {
		return planVerify(c)
	}
	o, err := offlineOptions(c)
	if err != nil {
		return err
	}
	res, err := verify.Offline(c.Context, o)
	return showVerify(c, "verify.offline", res, err)
}

func offlineOptions(c *cli.Context) (verify.OfflineOptions, error) {
	var o verify.OfflineOptions
	s, err := session(c)
	if err != nil {
		return o, err
	}
	py, _, err := python.Find(c.Context, python.Options{Exe: c.String("python"), Env: s.Env, Home: s.Prefix, Runner: s.Runner})
	if err != nil {
		return o, err
	}
	o.Options = verify.Options{
		Lifetimes: c.Int("lifetimes"), Preset: c.String("preset"), Workloads: c.StringSlice("workload"), Count: c.Int("requests"),
		Strict: c.Bool("strict"), Logs: filepath.Join(s.LogDir(), "verify-"+time.Now().Format("2006-01-02T15-04-05")),
		Env: s.Env, Runner: run.System{}, Progress: s.Progress,
	}
	if dir := c.String("logs"); dir != "" {
		o.Logs = absolute(dir)
	}
	o.Python, o.Folder, o.Control = py.Exe, c.String("model"), c.StringSlice("control-env")
	for _, kv := range o.Control {
		if k, _, ok := strings.Cut(kv, "="); !ok || k == "" {
			return o, report.Usagef("--control-env %s: want KEY=VALUE", kv)
		}
	}
	if o.Arguments, err = engineArguments(c.StringSlice("arg")); err != nil {
		return o, err
	}
	return o, os.MkdirAll(o.Logs, 0o755)
}

// engineArguments reads NAME=VALUE; numbers, booleans and objects are JSON,
// everything else is text.
func engineArguments(args []string) (map[string]any, error) {
	out := map[string]any{}
	for _, a := range args {
		k, text, ok := strings.Cut(a, "=")
		if !ok || k == "" {
			return nil, report.Usagef("--arg %s: want NAME=VALUE", a)
		}
		var v any
		if json.Unmarshal([]byte(text), &v) != nil {
			v = text
		}
		out[strings.ReplaceAll(strings.TrimLeft(k, "-"), "-", "_")] = v
	}
	return out, nil
}
