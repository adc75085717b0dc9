package main

import (
	"context"
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"github.com/invar-ops/invar/internal/imagefs"
	"github.com/invar-ops/invar/internal/probe"
	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/rootfs"
)

func outsideFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "root", Usage: "probe what lies in the unpacked root file system `DIR`; nothing of it is started"},
		&cli.StringFlag{Name: "image", Usage: "probe the image `REF` of a registry, an OCI layout or an archive (OCI, docker save); nothing of it is started"},
		&cli.StringFlag{Name: "platform", Usage: "of an image for several, as `OS/ARCH` (default: this host's)"},
	}
}

// insideOnly are options about processes, which a probe from outside starts none of.
var insideOnly = []string{"full", "record"}

// runProbeOutside probes what lies in another root. The paths of the flags are
// then paths inside it.
func runProbeOutside(c *cli.Context, o probe.Options) (probe.Result, error) {
	flag := "root"
	if c.IsSet("image") {
		flag = "image"
	}
	switch {
	case c.IsSet("image") && c.IsSet("root"):
		return probe.Result{}, report.Usagef("--image and --root: want one of them")
	case c.IsSet("platform") && !c.IsSet("image"):
		return probe.Result{}, report.Usagef("--platform chooses among the images of --image")
	case c.String(flag) == "":
		return probe.Result{}, report.Usagef("--%s is empty", flag)
	}
	for _, name := range insideOnly {
		if c.IsSet(name) {
			return probe.Result{}, report.Usagef("--%s needs a process of the installation, and --%s starts none", name, flag).
				WithHint("run invar probe --%s inside it", name)
		}
	}
	o.Env, o.Runner = nil, nil
	o.Prefix, o.Python, o.CANN = typed(c, "prefix", "INVAR_HOME"), typed(c, "python", "INVAR_PYTHON"), c.String("cann")
	for _, p := range []string{o.Prefix, o.CANN} {
		if p != "" && !filepath.IsAbs(p) {
			return probe.Result{}, report.Usagef("%q: with --%s, a path is one inside it and begins with /", p, flag)
		}
	}
	if flag == "image" {
		return probe.RunImage(c.Context, imagefs.Options{Ref: c.String("image"), Platform: c.String("platform"), Progress: o.Progress}, o)
	}
	return probeRoot(c.Context, c.String("root"), o)
}

func probeRoot(ctx context.Context, dir string, o probe.Options) (probe.Result, error) {
	root, err := rootfs.Open(absolute(dir))
	if err != nil {
		return probe.Result{}, report.Usagef("--root: %w", err).WithWant("the folder of an unpacked root file system", dir)
	}
	if root.Live() {
		return probe.Result{}, report.Usagef("--root %s is the root of this machine", dir).WithHint("leave --root out: invar probe asks more than it")
	}
	o.Root = root
	return probe.Run(ctx, o)
}

// typed is a flag as it was typed: the variable that stands in for it speaks
// about this machine, and not about another root.
func typed(c *cli.Context, flag, variable string) string {
	if v := c.String(flag); v != os.Getenv(variable) {
		return v
	}
	return ""
}
