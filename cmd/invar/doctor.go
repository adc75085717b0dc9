package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/invar-ops/invar/internal/doctor"
	"github.com/invar-ops/invar/internal/host"
	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/target"
)

func doctorCommand() *cli.Command {
	return &cli.Command{
		Name: "doctor", Usage: "will a build work here, and what to do if not",
		Description: "Every requirement of build, install and probe, the versions that belong together,\n" +
			"the settings behind known failures, and what a container needs. Nothing is changed\n" +
			"and no accelerator is used. Exit code 3: something fails. 6: something could not be\n" +
			"judged. Warnings do not change the exit code.",
		UsageText: "invar doctor                       for the detected target\n" +
			"invar doctor ascend910b            for one target\n" +
			"invar doctor cpu --root DIR        an unpacked image or another root\n" +
			"invar doctor cuda --python PY --junit doctor.xml",
		ArgsUsage: "[TARGET]",
		Flags: []cli.Flag{
			prefixFlag(), pythonFlag(), jsonFlag(),
			&cli.StringFlag{Name: "root", Usage: "examine the tree in `DIR` instead of this machine"},
			&cli.StringFlag{Name: "env-file", Usage: "with --root: `FILE` of KEY=VALUE lines, the environment that processes there have"},
			&cli.StringFlag{Name: "soc", Usage: "the SoC, when detection cannot tell"},
			&cli.StringFlag{Name: "junit", Usage: "also write the findings as JUnit XML to `FILE`"},
			&cli.BoolFlag{Name: "all", Usage: "also print what holds"},
		},
		Action: runDoctor, BashComplete: completeTargets,
	}
}

func runDoctor(c *cli.Context) error {
	if err := argsAtMost(c, 1); err != nil {
		return err
	}
	s, err := session(c)
	if err != nil {
		return err
	}
	rootEnv, err := envFile(c)
	if err != nil {
		return err
	}
	t, why, socs, err := doctorTarget(c)
	if err != nil {
		return err
	}
	dir, err := os.Getwd()
	if err != nil {
		dir = ""
	}
	res, err := doctor.Run(c.Context, t, doctor.Options{
		Root: c.String("root"), Python: c.String("python"), Prefix: s.Prefix, Dir: dir,
		Env: s.Env, RootEnv: rootEnv, SoCs: socs, Runner: s.Runner,
	})
	if err != nil {
		return err
	}
	res.Why, err = why, res.Err()
	if file := c.String("junit"); file != "" {
		write := func(w io.Writer) error { return doctor.WriteJUnit(w, res) }
		if werr := replaceFile(absolute(file), write); werr != nil {
			return report.Problemf(report.Failed, "--junit: %w", werr)
		}
	}
	if c.Bool("json") {
		return printed(c, "doctor", res, err)
	}
	showDoctor(c.App.Writer, res, c.Bool("all"))
	if err != nil {
		return fmt.Errorf("%w%w", silent{}, err) // the list says it
	}
	return nil
}

// envFile reads the environment of an image: docker inspect gives it as
// KEY=VALUE entries. Blank lines and comments are passed over.
func envFile(c *cli.Context) ([]string, error) {
	name := c.String("env-file")
	if name == "" {
		return nil, nil
	}
	if c.String("root") == "" {
		return nil, report.Usagef("--env-file goes with --root; this machine has its own environment")
	}
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, report.Usagef("--env-file: %w", err)
	}
	out := []string{}
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if !strings.Contains(line, "=") {
			return nil, report.Usagef("--env-file %s: %q is not KEY=VALUE", name, line)
		}
		out = append(out, line)
	}
	return out, nil
}

// doctorTarget is the one that was named, else the detected one. A named
// target still learns which SoCs are here.
func doctorTarget(c *cli.Context) (t target.Target, why string, socs []string, err error) {
	if root := c.String("root"); root != "" {
		if _, err := os.Stat(root); err != nil {
			return t, "", nil, report.Usagef("--root: %w", err)
		}
	}
	facts, err := detectHost(c.Context, c.String("root"), c.String("soc"), true) // what only -q knows is health
	if err != nil {
		return t, "", nil, err
	}
	v := host.Judge(facts)
	socs = v.SoCs
	if v.SoC != "" {
		socs = []string{v.SoC}
	}
	if name := c.Args().First(); name != "" && name != "auto" {
		t, err = target.Find(name)
		return t, "it was named", socs, err
	}
	if err := v.Err(); err != nil {
		return t, "", nil, err
	}
	t, err = target.Find(v.Target)
	return t, v.Reason, socs, err
}

// replaceFile writes file in one step, so that nobody reads half of it.
func replaceFile(file string, write func(io.Writer) error) error {
	f, err := os.CreateTemp(filepath.Dir(file), ".invar-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }() // gone when the rename worked
	err = write(f)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Chmod(f.Name(), 0o644)
	}
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), file)
}

// groups in the order of printing, with what they are called.
var doctorGroups = [][2]string{
	{"requirement", "requirements"}, {"versions", "versions"}, {"environment", "environment"}, {"container", "container"},
}

func showDoctor(w io.Writer, r doctor.Result, all bool) {
	where := r.System
	if r.Root != "/" {
		where = r.Root + " (" + or(r.System, "unknown system") + ")"
	}
	fmt.Fprintf(w, "%s on %s: %d fail, %d warn, %d hold", r.Target, or(where, "this machine"),
		r.Count(report.Fail), r.Count(doctor.Warn), r.Count(report.Pass))
	if n := r.Count(report.Unclear); n > 0 {
		fmt.Fprintf(w, ", %d cannot be told", n)
	}
	fmt.Fprintln(w)
	for _, g := range doctorGroups {
		showGroup(w, g[1], r, g[0], all)
	}
	if r.Install != "" {
		fmt.Fprintf(w, "\nall missing packages at once\n  %s\n", r.Install)
	}
	showNearest(w, r)
	if r.Container != nil {
		fmt.Fprintf(w, "\ncontainer on this host\n  %s\n", r.Container.Command("IMAGE"))
		for _, m := range r.Container.Missing {
			fmt.Fprintf(w, "  missing    %s\n", m)
		}
		for _, m := range r.Container.Skipped {
			fmt.Fprintf(w, "  not here   %s\n", m)
		}
	}
	if !all && r.Count(report.Pass) > 0 {
		fmt.Fprintf(w, "\nwhat holds: invar doctor %s --all\n", r.Target)
	}
}

func showGroup(w io.Writer, title string, r doctor.Result, group string, all bool) {
	first := true
	for _, f := range r.Findings {
		if f.Group != group || (f.Status == report.Pass && !all) {
			continue
		}
		if first {
			fmt.Fprintf(w, "\n%s\n", title)
			first = false
		}
		word := map[report.Status]string{report.Unclear: "unclear"}[f.Status]
		word = or(word, string(f.Status))
		colour := map[report.Status]string{doctor.Warn: "skip"}[f.Status]
		fmt.Fprintf(w, "  %s %s", paint(w, or(colour, string(f.Status)), fmt.Sprintf("%-7s", word)), f.Name)
		if f.For != "build" {
			fmt.Fprintf(w, " (%s)", f.For)
		}
		fmt.Fprintln(w)
		rows := [][2]string{{"want", f.Want}, {"got", f.Got}, {"try", f.Hint}}
		if f.Status == report.Pass {
			rows = [][2]string{{"got", f.Got}}
		}
		for _, row := range rows {
			if row[1] != "" {
				fmt.Fprintf(w, "          %-5s %s\n", row[0], strings.ReplaceAll(row[1], "\n", "\n                "))
			}
		}
	}
}

func showNearest(w io.Writer, r doctor.Result) {
	if len(r.Nearest) == 0 || len(r.Nearest[0].Changes) == 0 {
		return
	}
	fmt.Fprintln(w, "\nnearest published combinations")
	for _, a := range r.Nearest {
		fmt.Fprintf(w, "  vllm-ascend %-10s %s\n", a.Row, a.Phrase())
	}
	for _, cmd := range r.Nearest[0].Commands {
		fmt.Fprintf(w, "    %s\n", cmd)
	}
}
