package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/urfave/cli/v2"
)

// release is the version of the operators' packages and of this program;
// CHANGELOG.md says what is in it.
const release = "1.0.0"

// invarVersion is the release, with the commit where the build knows it.
func invarVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return release
	}
	var rev, dirty string
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			rev = s.Value[:min(12, len(s.Value))]
		case "vcs.modified":
			if s.Value == "true" {
				dirty = ".dirty"
			}
		}
	}
	if rev == "" {
		return release
	}
	return release + "+g" + rev + dirty
}

func versionCommand() *cli.Command {
	return &cli.Command{
		Name: "version", Usage: "print invar's version", Flags: []cli.Flag{jsonFlag()},
		Action: func(c *cli.Context) error {
			if err := argsAtMost(c, 0); err != nil {
				return err
			}
			if c.Bool("json") {
				return printed(c, "version", map[string]string{
					"version": invarVersion(), "release": release, "go": runtime.Version(),
					"os": runtime.GOOS, "arch": runtime.GOARCH,
				}, nil)
			}
			_, err := fmt.Fprintf(c.App.Writer, "invar %s (%s, %s/%s)\n", invarVersion(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}
