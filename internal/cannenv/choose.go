// Package cannenv chooses the CANN that a build works with and captures what
// its set_env.sh would do to a shell, so that nobody has to source anything.
// It changes no file; Choose starts nothing, Capture starts one bash.
package cannenv

import (
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/invar-ops/invar/internal/cann"
	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/rootfs"
	"github.com/invar-ops/invar/internal/run"
	"github.com/invar-ops/invar/internal/store"
	"github.com/invar-ops/invar/internal/version"
)

// A Choice is the CANN to work with and why it is this one.
type Choice struct {
	CANN   cann.Install `json:"cann"`
	Why    string       `json:"why"`
	SetEnv string       `json:"set_env"`           // script that is captured
	ATB    string       `json:"atb,omitempty"`     // that of nnal, "" when it is not installed
	Devlib string       `json:"devlib,omitempty"`  // stands in for the driver's library; "" with a driver
	Driver string       `json:"driver,omitempty"`  // where libascend_hal.so is
	Digest string       `json:"digest"`            // of the scripts and version files
	Others []string     `json:"others,omitempty"`  // trees that were not taken
	Opp    string       `json:"opp_dir,omitempty"` // opp of the tree

	parts   []string // that Digest is of
	devlibs []string // that the tree has
}

// SameScripts reports whether digest was taken of the same scripts and version
// files, be it with a driver there or without.
func (c Choice) SameScripts(digest string) bool {
	return slices.ContainsFunc(append([]string{""}, c.devlibs...), func(devlib string) bool { return digestOf(c.parts, devlib) == digest })
}

func digestOf(parts []string, devlib string) string {
	return store.DigestBytes([]byte(strings.Join(append(slices.Clone(parts), devlib), "\n")))
}

// Found reports whether there is a CANN.
func (c Choice) Found() bool { return c.CANN.Dir != "" }

// Choose finds the CANN trees and takes the one that flag names, else the one
// that the environment names, else the one behind the usual links, else the
// newest. No CANN is the zero Choice; a flag that names none is an error.
func Choose(root, flag string, env []string) (Choice, error) {
	r, err := rootfs.Open(root)
	if err != nil {
		return Choice{}, err
	}
	var c Choice
	if flag != "" {
		dir, err := filepath.Abs(flag)
		if err != nil {
			return Choice{}, err
		}
		in, ok := cann.Read(r, dir)
		if !ok {
			return Choice{}, report.Problemf(report.Unmet, "--cann %s is no CANN tree", flag).
				WithWant("a folder with version files, opp and set_env.sh", dir).
				WithHint("name the folder that holds set_env.sh, as /usr/local/Ascend/cann-9.1.0")
		}
		c.CANN, c.Why = in, "--cann names it"
	} else {
		c.pick(r, env)
	}
	if !c.Found() {
		return Choice{}, nil
	}
	c.complete(r, env)
	return c, nil
}

var named = []string{"ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME"}

func (c *Choice) pick(r rootfs.Root, env []string) {
	var extra []string
	for _, name := range named {
		if v := run.Getenv(env, name); v != "" {
			extra = append(extra, v)
		}
	}
	all, _ := cann.Find(r, extra...)
	c.CANN, c.Why = prefer(all, env)
	for _, in := range all {
		if in.Dir != c.CANN.Dir {
			c.Others = append(c.Others, strings.TrimSpace(in.Version.String()+" "+in.Dir))
		}
	}
}

func prefer(all []cann.Install, env []string) (cann.Install, string) {
	for _, name := range named {
		v := path.Clean(run.Getenv(env, name))
		for _, in := range all {
			if v != "." && (in.Dir == v || slices.Contains(in.Names, v)) {
				return in, name + " names it"
			}
		}
	}
	var best cann.Install
	for _, in := range all {
		if in.Package != "toolkit" {
			continue
		}
		for _, n := range in.Names {
			if base := path.Base(n); base == "latest" || base == "cann" {
				return in, n + " leads to it"
			}
		}
		if best.Dir == "" || version.Less(best.Version, in.Version) {
			best = in
		}
	}
	if best.Dir == "" && len(all) > 0 {
		return all[0], "no toolkit, only " + all[0].Package
	}
	return best, "it is the newest"
}

// complete finds what belongs to the tree: scripts, opp, driver.
func (c *Choice) complete(r rootfs.Root, env []string) {
	dir := c.CANN.Dir
	c.SetEnv, c.Opp = c.CANN.SetEnv, filepath.Join(dir, "opp")
	for _, up := range []string{filepath.Dir(dir), filepath.Dir(filepath.Dir(dir)), "/usr/local/Ascend"} {
		if p := filepath.Join(up, "nnal", "atb", "set_env.sh"); c.ATB == "" && r.IsFile(p) {
			c.ATB = p
		}
	}
	for _, p := range append(r.Glob(dir+"/*-linux/devlib"), dir+"/devlib") {
		if r.IsFile(p + "/" + hal) {
			c.devlibs = append(c.devlibs, p)
		}
	}
	if c.Driver = driver(r, env); c.Driver == "" && len(c.devlibs) > 0 {
		c.Devlib = c.devlibs[0]
	}
	for _, p := range []string{c.SetEnv, c.ATB, c.CANN.Source} {
		b, err := r.ReadFile(p)
		if err == nil {
			c.parts = append(c.parts, fmt.Sprintf("%s %d %s", p, len(b), b))
		}
	}
	c.Digest = digestOf(c.parts, c.Devlib)
}

// hal is the library by which the driver is reached; devlib has one that only links.
const hal = "libascend_hal.so"

func driver(r rootfs.Root, env []string) string {
	if d, ok := cann.ReadDriver(r); ok && d.Library != "" {
		return path.Dir(d.Library)
	}
	for p := range strings.SplitSeq(run.Getenv(env, "LD_LIBRARY_PATH"), ":") {
		if path.IsAbs(p) && path.Base(p) != "devlib" && r.IsFile(p+"/"+hal) {
			return p
		}
	}
	return ""
}
