package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"github.com/invar-ops/invar/internal/invar"
	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/vllmascend"
)

func buildCommand() *cli.Command {
	return &cli.Command{
		Name: "build", Usage: "both stages, install, probe",
		Description: "Detects the SoC (or takes TARGET), builds the run package (stage 1) and the wheel\n" +
			"(stage 2), installs both as one transaction and probes them as deep as this host can.",
		UsageText: "invar build                       what this host has\n" +
			"invar build cpu --jobs 2          one target, two compiles at a time\n" +
			"invar build --python .venv        into that environment\n" +
			"invar build cuda --arch 8.0,9.0   for GPUs that need not be here\n" +
			"invar build cpu --dry-run         show the plan, change nothing",
		ArgsUsage: "[TARGET]",
		Flags: append(append(planFlags(), releaseFlags()...),
			&cli.IntFlag{Name: "jobs", Aliases: []string{"j"}, EnvVars: []string{"INVAR_JOBS"}, Usage: "compile `N` files at a time (default: by cores and memory)"},
			&cli.BoolFlag{Name: "dry-run", Usage: "print the plan and stop"},
			&cli.BoolFlag{Name: "force", Usage: "build and install although nothing changed"},
			&cli.BoolFlag{Name: "replace", Usage: "move a batch_invariant_ops that others installed aside; rollback brings it back"},
			&cli.BoolFlag{Name: "take-over", Usage: "take this Python from another prefix of invar"},
			&cli.BoolFlag{Name: "no-wait", Usage: "fail when another build holds the prefix"},
			&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "no progress"},
		),
		Action: runBuild, BashComplete: completeTargets,
	}
}

func planFlags() []cli.Flag {
	return []cli.Flag{
		prefixFlag(), pythonFlag(), jsonFlag(),
		&cli.StringFlag{Name: "soc", Usage: "the SoC, when detection cannot tell"},
		&cli.StringFlag{Name: "torch", Usage: "requirement `SPEC` of torch for an environment that invar makes, as torch==2.10.0"},
		&cli.StringFlag{Name: "torch-index", EnvVars: []string{"INVAR_TORCH_INDEX"}, Usage: "package index `URL` for that torch"},
		&cli.StringFlag{Name: "wheelhouse", EnvVars: []string{"INVAR_WHEELHOUSE"}, Usage: "folder `DIR` with wheels"},
		&cli.StringFlag{Name: "arch", EnvVars: []string{"INVAR_CUDA_ARCH"}, Usage: "GPU architectures `LIST` of the target cuda, as 8.0,9.0,12.0 or 9.0a, 12.0f, 8.0+PTX, Hopper"},
		&cli.StringFlag{Name: "cuda-home", Usage: "CUDA toolkit in `DIR` (default CUDA_HOME, CUDA_PATH, PATH, /usr/local/cuda*, the chosen Python)"},
		&cli.BoolFlag{Name: "install-toolkit", Usage: "put a CUDA toolkit that matches torch into invar's own folder, from compiler wheels"},
		&cli.BoolFlag{Name: "offline", EnvVars: []string{"INVAR_OFFLINE"}, Usage: "use no network"},
	}
}

func planOptions(c *cli.Context) (invar.Options, error) {
	o := invar.Options{
		Target: c.Args().First(), SoC: c.String("soc"), Python: c.String("python"), Torch: c.String("torch"),
		TorchIndex: c.String("torch-index"), Wheelhouse: c.String("wheelhouse"), Offline: c.Bool("offline"),
		Jobs: c.Int("jobs"), Replace: c.Bool("replace"), TakeOver: c.Bool("take-over"),
		NoWait: c.Bool("no-wait"), Force: c.Bool("force"),
		CUDA: invar.CUDAOptions{Arch: c.String("arch"), Home: c.String("cuda-home"), InstallToolkit: c.Bool("install-toolkit")},
	}
	if o.Jobs < 0 {
		return o, report.Usagef("--jobs %d: want 1 or more", o.Jobs)
	}
	var err error
	if o.Release, err = releaseOptions(c); err != nil {
		return o, err
	}
	if o.CUDA.Home != "" {
		o.CUDA.Home = absolute(o.CUDA.Home)
	}
	if o.Wheelhouse != "" {
		o.Wheelhouse = absolute(o.Wheelhouse)
	}
	return o, argsAtMost(c, 1)
}

func runBuild(c *cli.Context) error {
	if os.Getenv(vllmascend.InBuild) == "1" {
		// A shim in a tree that an outer build installs or compiles.
		fmt.Fprintln(c.App.ErrWriter, "invar: inside an invar build: nothing to do here, the outer one installs the operators")
		return nil
	}
	o, err := planOptions(c)
	if err != nil {
		return err
	}
	s, err := session(c)
	if err != nil {
		return err
	}
	if c.Bool("dry-run") {
		return showPlan(c, s, o, planView{})
	}
	end := grouped(s.Progress)
	res, err := s.Build(c.Context, o)
	end()
	if res.Probe != nil {
		retellChecks(c, res.Probe)
	}
	if c.Bool("json") {
		return printed(c, "build", res, err)
	}
	showBuild(c.App.Writer, res, err)
	return err
}

// absolute is path made absolute; an empty or odd one stays as it is and
// fails where it is used.
func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}
