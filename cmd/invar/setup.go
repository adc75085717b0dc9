package main

import (
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/invar-ops/invar/internal/invar"
	"github.com/invar-ops/invar/internal/run"
	"github.com/invar-ops/invar/internal/vllm"
)

func setupCommand() *cli.Command {
	return &cli.Command{
		Name: "setup", Usage: "make what a comparison on a real server needs",
		UsageText:   "invar setup vllm",
		Subcommands: []*cli.Command{setupVLLMCommand()},
	}
}

func setupVLLMCommand() *cli.Command {
	return &cli.Command{
		Name: "vllm", Usage: "vLLM for the CPU, small models, and invar's operators in it",
		Description: "Makes a Python environment with vLLM for the CPU, every package pinned, two small\n" +
			"models of random weights (nothing is downloaded for them), and installs invar's\n" +
			"operators into it. What is there already is kept.",
		UsageText: "invar setup vllm                          all of it\n" +
			"invar setup vllm --model small-float32    one model\n" +
			"invar setup vllm --dry-run                what would be made",
		Flags: []cli.Flag{
			prefixFlag(), jsonFlag(),
			&cli.StringFlag{Name: "version", Value: vllm.Newest, Usage: "`VERSION` of vLLM"},
			&cli.StringSliceFlag{Name: "model", Usage: "make this model only; may be repeated"},
			&cli.BoolFlag{Name: "no-operators", Usage: "leave invar's operators out"},
			&cli.BoolFlag{Name: "offline", EnvVars: []string{"INVAR_OFFLINE"}, Usage: "use no network"},
			&cli.BoolFlag{Name: "dry-run", Usage: "say what would be made and stop"},
			&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "no progress"},
		},
		Action: runSetupVLLM,
	}
}

// setupResult is what `setup vllm --json` prints.
type setupResult struct {
	vllm.Place
	DryRun     bool   `json:"dry_run"`
	Generation int    `json:"generation"` // of invar's operators in the environment; 0 is none
	Contract   string `json:"contract,omitempty"`
	// Verify is the command that shows what the operators do, word by word.
	Verify []string `json:"verify,omitempty"`
}

func runSetupVLLM(c *cli.Context) error {
	if err := argsAtMost(c, 0); err != nil {
		return err
	}
	s, err := session(c)
	if err != nil {
		return err
	}
	o := vllm.Options{
		Prefix: s.Prefix, Version: c.String("version"), Models: c.StringSlice("model"), Offline: c.Bool("offline"),
		LogDir: s.LogDir(), Env: s.Env, Runner: s.Runner, Progress: s.Progress,
	}
	var res setupResult
	if c.Bool("dry-run") {
		res.DryRun = true
		res.Place, err = vllm.Preview(o)
	} else if res.Place, err = vllm.Setup(c.Context, o); err == nil && !c.Bool("no-operators") {
		var built invar.BuildResult
		built, err = s.Build(c.Context, invar.Options{Target: "cpu", Python: res.Python, Offline: o.Offline})
		res.Generation, res.Contract = built.Receipt.Generation, built.Receipt.Contract
		res.UpToDate = res.UpToDate && built.UpToDate
	}
	if err == nil && !res.DryRun && res.Generation > 0 && len(res.Models) > 0 {
		res.Verify = res.VerifyWords(res.Shown())
	}
	if c.Bool("json") {
		return printed(c, "setup.vllm", res, err)
	}
	if err == nil {
		showSetup(c.App.Writer, res)
	}
	return err
}

func showSetup(w io.Writer, r setupResult) {
	state := map[bool]string{true: "is up to date", false: "is ready"}[r.UpToDate]
	if r.DryRun {
		state = map[bool]string{true: "is there", false: "would be made"}[r.UpToDate]
	}
	fmt.Fprintf(w, "vLLM %s %s: %s\n", r.Version, state, filepath.Dir(filepath.Dir(r.Python)))
	for _, name := range slices.Sorted(maps.Keys(r.Models)) {
		fmt.Fprintf(w, "model     %s\n", r.Models[name])
	}
	if r.Generation > 0 {
		fmt.Fprintf(w, "operators generation %d, %s\n", r.Generation, r.Contract)
	}
	if r.DryRun || len(r.Models) == 0 {
		return
	}
	fmt.Fprintf(w, "serve     %s\ninvariant INVAR_BATCH_INVARIANT=1 in front of it\n", r.ServeLine(r.Shown()))
	if len(r.Verify) > 0 {
		fmt.Fprintf(w, "verify    %s\n", run.Cmd{Argv: r.Verify}.String())
	}
}
