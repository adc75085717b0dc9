package main

import (
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/invar-ops/invar/internal/invar"
	"github.com/invar-ops/invar/internal/pins"
	"github.com/invar-ops/invar/internal/report"
)

// releaseFlags are those of targets whose operators a vendor releases.
func releaseFlags() []cli.Flag {
	const category = "Released operators (Ascend)"
	flags := []cli.Flag{
		&cli.StringFlag{Name: "ops-version", EnvVars: []string{"INVAR_OPS_VERSION"}, Usage: "`VERSION` of the released operators (default: the newest that is known)", Category: category},
		&cli.StringFlag{Name: "run-package", EnvVars: []string{"INVAR_RUN_PACKAGE"}, Usage: "`FILE`, folder or address of the run package instead of the published one", Category: category},
		&cli.StringFlag{Name: "ops-source", Usage: "build the run package from the operator source tree `DIR` with its build.sh", Category: category},
		&cli.StringSliceFlag{Name: "ops", Usage: "only these operators of --ops-source: `NAME`, more than once or with commas", Category: category},
		&cli.StringFlag{Name: "third-party", Usage: "folder `DIR` with the archives that the build of --ops-source would fetch", Category: category},
		&cli.StringFlag{Name: "extension", EnvVars: []string{"INVAR_EXTENSION"}, Usage: "`SOURCES` of the wheel instead of the published zip: zip, tree, folder or address", Category: category},
		&cli.StringSliceFlag{Name: "mirror", EnvVars: []string{"INVAR_MIRROR"}, Usage: "folder or `ADDRESS` to ask first; more than once", Category: category},
		&cli.StringSliceFlag{Name: "accept-digest", Usage: "use content with this `DIGEST` (sha256:...) and remember it in the lock file; more than once", Category: category},
		&cli.StringFlag{Name: "lock", EnvVars: []string{"INVAR_LOCK"}, Usage: "lock `FILE` (default ./invar.lock where it is, else one in the prefix)", Category: category},
		&cli.StringSliceFlag{Name: "ca-file", EnvVars: []string{"INVAR_CA_FILE"}, Usage: "trust the certificates in `FILE` (PEM) beside the system's", Category: category},
		cannFlag(category),
		&cli.StringFlag{Name: "installer", Value: "script", Usage: "`HOW` the run package is installed: script (its own, confined) or copy (its files, nothing of it is run)", Category: category},
		&cli.BoolFlag{Name: "repair", Usage: "put known defects of a release right by links, and say so", Category: category},
		&cli.BoolFlag{Name: "allow-version-skew", Usage: "go on where versions do not belong together: package, CANN, torch, torch_npu", Category: category},
		&cli.BoolFlag{Name: "into-cann", Usage: "also link the operators into opp/vendors of CANN and keep its config.ini right", Category: category},
		&cli.StringFlag{Name: "install-vllm-ascend", Usage: "install vllm-ascend from the source tree `DIR` first, then the operators", Category: category},
		&cli.BoolFlag{Name: "editable", Usage: "--install-vllm-ascend as an editable install", Category: category},
		&cli.StringFlag{Name: "vllm-ascend", Usage: "the operators that the source tree `DIR` of the installed vllm-ascend names", Category: category},
	}
	return flags
}

func cannFlag(category string) cli.Flag {
	return &cli.StringFlag{Name: "cann", EnvVars: []string{"INVAR_CANN"}, Usage: "folder `DIR` of the CANN to use (default ASCEND_HOME_PATH, then the usual places)", Category: category}
}

func releaseOptions(c *cli.Context) (invar.ReleaseOptions, error) {
	o := invar.ReleaseOptions{
		OpsVersion: c.String("ops-version"), RunPackage: local(c.String("run-package")), OpsSource: local(c.String("ops-source")),
		ThirdParty: local(c.String("third-party")), Extension: local(c.String("extension")), Lock: local(c.String("lock")),
		CANN: local(c.String("cann")), Installer: c.String("installer"), Repair: c.Bool("repair"),
		Skew: c.Bool("allow-version-skew"), IntoCANN: c.Bool("into-cann"),
		InstallVLLM: local(c.String("install-vllm-ascend")), Editable: c.Bool("editable"), VLLMTree: local(c.String("vllm-ascend")), CAFiles: c.StringSlice("ca-file"),
	}
	for _, text := range c.StringSlice("ops") {
		for name := range strings.SplitSeq(text, ",") {
			if name = strings.TrimSpace(name); name != "" {
				o.Ops = append(o.Ops, name)
			}
		}
	}
	for _, m := range c.StringSlice("mirror") {
		for one := range strings.FieldsSeq(m) { // the variable may hold several
			o.Mirrors = append(o.Mirrors, local(one))
		}
	}
	for _, d := range c.StringSlice("accept-digest") {
		hex, err := pins.ParseDigest(d)
		if err != nil {
			return o, err
		}
		o.Accept = append(o.Accept, hex)
	}
	if o.InstallVLLM != "" && o.VLLMTree != "" {
		return o, report.Usagef("--install-vllm-ascend and --vllm-ascend exclude each other")
	}
	if o.Editable && o.InstallVLLM == "" {
		return o, report.Usagef("--editable goes with --install-vllm-ascend DIR")
	}
	if o.Installer != "script" && o.Installer != "copy" {
		return o, report.Usagef("--installer %s: want script or copy", o.Installer)
	}
	return o, nil
}

// local is a path made absolute; addresses stay as they are.
func local(text string) string {
	if text == "" || strings.Contains(text, "://") {
		return text
	}
	return absolute(text)
}
