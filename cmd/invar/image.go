package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"github.com/invar-ops/invar/internal/image"
	"github.com/invar-ops/invar/internal/report"
)

func imageCommand() *cli.Command {
	return &cli.Command{
		Name: "image", Usage: "container images with the operators",
		Description: "The matrix of images (targets and operating systems) is data; every image has the\n" +
			"probe as its last step, so one whose operators do not work does not get built.",
		UsageText:   "invar image plan\ninvar image build cpu --os debian12",
		Subcommands: []*cli.Command{imagePlanCommand(), imageBuildCommand()},
	}
}

func imageFlags() []cli.Flag {
	return []cli.Flag{
		jsonFlag(),
		&cli.StringFlag{Name: "os", Usage: "operating system of the image, as ubuntu24.04 or openeuler24.03"},
		&cli.StringFlag{Name: "repository", Value: image.LocalRepository, EnvVars: []string{"INVAR_IMAGE_REPOSITORY"}, Usage: "`NAME` of the images without the tag"},
		&cli.StringFlag{Name: "tag", Value: release, Usage: "first part of every tag"},
		&cli.StringSliceFlag{Name: "build-arg", Usage: "`NAME=VALUE` of a build argument; may be repeated"},
		&cli.StringFlag{Name: "base", Usage: "base image `REF` in place of the matrix's"},
	}
}

func imageOptions(c *cli.Context) (image.Options, error) {
	o := image.Options{
		Families: c.Args().Slice(), OS: c.String("os"), Repository: c.String("repository"), Version: c.String("tag"),
		Base: c.String("base"), Args: map[string]string{},
	}
	for _, a := range c.StringSlice("build-arg") {
		name, value, ok := strings.Cut(a, "=")
		if !ok || name == "" {
			return o, report.Usagef("--build-arg %q: want NAME=VALUE", a)
		}
		o.Args[name] = value
	}
	return o, nil
}

func imagePlanCommand() *cli.Command {
	return &cli.Command{
		Name: "plan", Usage: "the matrix of images",
		Description: "Prints one row an image. With --json, .result.include is a matrix for GitHub's fromJSON;\n" +
			"with --bake, the same as a file for docker buildx bake.",
		UsageText: "invar image plan\ninvar image plan ascend910b ascend910_93 --json\ninvar image plan --bake > docker-bake.hcl",
		ArgsUsage: "[IMAGE...]",
		Flags:     append(imageFlags(), &cli.BoolFlag{Name: "bake", Usage: "print a bake file (HCL)"}),
		Action:    runImagePlan, BashComplete: completeImages,
	}
}

func runImagePlan(c *cli.Context) error {
	o, err := imageOptions(c)
	if err != nil {
		return err
	}
	if c.Bool("bake") && c.Bool("json") {
		return report.Usagef("--bake and --json: want one of them")
	}
	rows, err := image.Plan(o)
	if err != nil {
		return err
	}
	switch {
	case c.Bool("bake"):
		return image.WriteBake(c.App.Writer, rows)
	case c.Bool("json"):
		return printed(c, "image.plan", map[string]any{"include": rows}, nil)
	}
	w := tabwriter.NewWriter(c.App.Writer, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "IMAGE\tSOC\tBASE\tPROBE\tTAGS")
	for _, r := range rows {
		var tags []string
		for _, t := range r.Tags {
			tags = append(tags, strings.TrimPrefix(t, o.Repository))
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", r.Name, or(r.SoC, "-"), r.Base, level(r.Require), strings.Join(tags, " "))
	}
	return w.Flush()
}

// level is the probe level of an image; one without operators has none.
func level(n int) string {
	if n == 0 {
		return "-"
	}
	return strconv.Itoa(n)
}

func imageBuildCommand() *cli.Command {
	return &cli.Command{
		Name: "build", Usage: "build one image",
		Description: "Drives docker buildx, buildctl, buildah or podman, whichever answers. The base is taken by\n" +
			"digest; the tags are given only after the probe inside the build has passed. SOURCE_DATE_EPOCH\n" +
			"is the time of every file; equal inputs give an equal digest.",
		UsageText: "invar image build cpu --os debian12\n" +
			"invar image build ascend910b --repository registry.example/me/vllm-ascend --push\n" +
			"invar image build cuda --build-arg CUDA_ARCH_LIST=9.0 --output cuda.tar",
		ArgsUsage: "IMAGE",
		Flags: append(imageFlags(),
			&cli.StringFlag{Name: "builder", EnvVars: []string{"INVAR_IMAGE_BUILDER"}, Usage: strings.Join(image.Builders(), ", ") + " (default: the first that answers)"},
			&cli.StringFlag{Name: "platform", Usage: "linux/amd64 or linux/arm64 (default: this host's)"},
			&cli.StringFlag{Name: "binary", Usage: "invar for that platform (default: this program)"},
			&cli.StringFlag{Name: "output", Usage: "write the image to `FILE`, a tar that docker and podman load"},
			&cli.BoolFlag{Name: "push", Usage: "push the image to the registry of --repository"},
			&cli.StringSliceFlag{Name: "secret", Usage: "`id=pip.conf,src=FILE`: a pip.conf for the build that stays out of the image"},
			&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "no progress"},
		),
		Action: runImageBuild, BashComplete: completeImages,
	}
}

func runImageBuild(c *cli.Context) error {
	o, err := imageOptions(c)
	if err != nil {
		return err
	}
	if c.NArg() != 1 {
		return report.Usagef("image build takes one image").WithHint("invar image plan lists them")
	}
	s, err := session(c)
	if err != nil {
		return err
	}
	epoch, err := sourceDateEpoch()
	if err != nil {
		return err
	}
	req := image.Request{
		Options: o, Builder: c.String("builder"), Platform: c.String("platform"), Binary: c.String("binary"),
		Push: c.Bool("push"), Secrets: c.StringSlice("secret"), Epoch: epoch, Release: invarVersion(),
		LogDir: s.LogDir(), Runner: s.Runner, Env: s.Env, Progress: s.Progress,
	}
	if out := c.String("output"); out != "" {
		req.Output = absolute(out)
	}
	res, err := image.Build(c.Context, req)
	if c.Bool("json") {
		return printed(c, "image.build", imageResult(res), err)
	}
	if err != nil {
		return err
	}
	w := c.App.Writer
	fmt.Fprintf(w, "%s for %s, from %s\n%s\n", res.Row.Name, res.Platform, res.From, res.Digest)
	for _, t := range res.Tags {
		fmt.Fprintln(w, t)
	}
	if res.Output != "" {
		fmt.Fprintln(w, res.Output)
	}
	return nil
}

// sourceDateEpoch is SOURCE_DATE_EPOCH in seconds, 0 when it is not set.
func sourceDateEpoch() (int64, error) {
	text := os.Getenv("SOURCE_DATE_EPOCH")
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, report.Usagef("SOURCE_DATE_EPOCH=%s: want seconds since 1970", text)
	}
	return n, nil
}

func completeImages(c *cli.Context) {
	all, err := image.Families()
	if err != nil {
		return
	}
	for _, f := range all {
		fmt.Fprintln(c.App.Writer, f.Name)
	}
}

// imageResult is nothing when the build did not come to an image: JSON then
// holds the error alone.
func imageResult(res image.Result) any {
	if res.Digest == "" {
		return nil
	}
	return res
}
