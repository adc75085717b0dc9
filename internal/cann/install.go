package cann

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/invar-ops/invar/internal/rootfs"
	"github.com/invar-ops/invar/internal/version"
)

// An Install is one CANN tree.
type Install struct {
	Dir      string          `json:"dir"`               // links resolved
	Names    []string        `json:"names,omitempty"`   // links that lead to it: .../latest, .../cann
	Package  string          `json:"package"`           // "toolkit", "nnae" or "nnrt"
	Version  version.Version `json:"version"`           // zero when no file tells
	Inner    string          `json:"inner,omitempty"`   // "V100R001C21SPC001B238"
	Arch     string          `json:"arch,omitempty"`    // "aarch64"
	Source   string          `json:"source,omitempty"`  // the file that told the version
	Release  bool            `json:"release"`           // false for builds before the release
	Compiler bool            `json:"compiler"`          // the operator compiler is in it
	Headers  bool            `json:"headers"`           // include/acl/acl.h is in it
	SetEnv   string          `json:"set_env,omitempty"` // its set_env.sh
}

// A Link is a name that leads nowhere.
type Link struct {
	Path string `json:"path"`
	To   string `json:"to"`
}

// patterns are where the installers put CANN; extra names come on top.
var patterns = []string{
	"/usr/local/Ascend/cann*",
	"/usr/local/Ascend/ascend-toolkit/*", "/usr/local/Ascend/nnae/*", "/usr/local/Ascend/nnrt/*",
	"/root/Ascend/cann*", "/root/Ascend/ascend-toolkit/*", "/root/Ascend/nnae/*",
	"/home/*/Ascend/cann*", "/home/*/Ascend/ascend-toolkit/*", "/home/*/Ascend/nnae/*",
	"/opt/Ascend/cann*", "/opt/Ascend/ascend-toolkit/*",
}

// Find lists the CANN trees below the usual places and in extra (the values of
// ASCEND_HOME_PATH and the like), and the links there that lead nowhere.
func Find(r rootfs.Root, extra ...string) ([]Install, []Link) {
	var places []string
	for _, p := range patterns {
		places = append(places, r.Glob(p)...)
	}
	var all []Install
	var broken []Link
	for _, p := range append(places, extra...) {
		if !path.IsAbs(p) {
			continue
		}
		if r.Broken(p) {
			to, _ := r.Resolve(p)
			broken = append(broken, Link{p, to})
			continue
		}
		in, ok := Read(r, p)
		if !ok {
			continue
		}
		all = merge(all, in, path.Clean(p))
	}
	return all, broken
}

// merge joins two names of one tree: "latest" of CANN 8 is a real directory of
// links, so the resolved version file tells that it is the same tree.
func merge(all []Install, in Install, name string) []Install {
	for i, have := range all {
		if have.Dir != in.Dir && (in.Source == "" || have.Source != in.Source) {
			continue
		}
		if isAlias(have.Dir) && !isAlias(in.Dir) {
			have.Names, have.Dir = append(have.Names, have.Dir), in.Dir
		}
		if name != have.Dir && !slices.Contains(have.Names, name) {
			have.Names = append(have.Names, name)
		}
		all[i] = have
		return all
	}
	if name != in.Dir {
		in.Names = append(in.Names, name)
	}
	return append(all, in)
}

func isAlias(dir string) bool { return path.Base(dir) == "latest" }

// Read describes the tree dir; ok is false when it holds nothing of CANN.
func Read(r rootfs.Root, dir string) (Install, bool) {
	real, err := r.Resolve(dir)
	if err != nil || !r.IsDir(real) {
		return Install{}, false
	}
	in := Install{Dir: real, Package: kind(real), Release: true}
	text := readVersion(r, &in)
	in.Compiler = anyExists(r, real, "bin/bisheng", "compiler/ccec_compiler/bin/bisheng", "*-linux/ccec_compiler/bin/bisheng", "compiler/ccec_compiler/bin/ccec")
	in.Headers = anyExists(r, real, "include/acl/acl.h", "*-linux/include/acl/acl.h")
	for _, p := range []string{real + "/set_env.sh", path.Dir(real) + "/set_env.sh"} {
		if r.IsFile(p) {
			in.SetEnv = p
			break
		}
	}
	if text == "" && !in.Compiler && !in.Headers && !r.IsDir(real+"/opp") && !r.IsDir(real+"/runtime") {
		return Install{}, false
	}
	if v, err := version.Parse(version.CANN, text); err == nil {
		in.Version = v
	}
	if in.Inner != "" { // a released build carries a service pack number
		in.Release = strings.Contains(in.Inner, "SPC")
	}
	if in.Version.IsPre() && !candidate(in.Version) {
		in.Release = false
	}
	return in, true
}

// candidate: RC releases of CANN 8 are what people are meant to use; alpha,
// beta and test builds are not.
func candidate(v version.Version) bool {
	return regexp.MustCompile(`(?i)^[\d.]+[.-]?rc\.?\d+(\.\d+)?$`).MatchString(v.String())
}

func kind(dir string) string {
	for part := range strings.SplitSeq(dir, "/") {
		if part == "nnae" || part == "nnrt" {
			return part
		}
	}
	return "toolkit"
}

func anyExists(r rootfs.Root, dir string, names ...string) bool {
	for _, n := range names {
		if slices.ContainsFunc(r.Glob(dir+"/"+n), r.Exists) {
			return true
		}
	}
	return false
}

var dirVersion = regexp.MustCompile(`^(?:cann-)?(\d+\.\d.*)$`)

// readVersion asks the files in the order of how directly they name CANN's own
// version: a component's "Version=" is the component's (7.6.0.1.220), not CANN's.
func readVersion(r rootfs.Root, in *Install) string {
	for _, pattern := range []string{"/*-linux/ascend_*_install.info", "/ascend_*_install.info"} {
		for _, p := range r.Glob(in.Dir + pattern) {
			if info, ok := load(r, p); ok && info["version"] != "" {
				in.Inner, in.Arch = info["innerversion"], info["arch"]
				in.Source = resolved(r, p)
				return info["version"]
			}
		}
	}
	for _, p := range append(r.Glob(in.Dir+"/version.cfg"), r.Glob(in.Dir+"/*/version.cfg")...) {
		if info, ok := load(r, p); ok && info.running() != "" {
			in.Source = resolved(r, p)
			return info.running()
		}
	}
	for _, name := range []string{"compiler", "toolkit", "runtime", "opp"} {
		p := in.Dir + "/" + name + "/version.info"
		if info, ok := load(r, p); ok && info["version_dir"] != "" {
			in.Source = resolved(r, p)
			return info["version_dir"]
		}
	}
	if m := dirVersion.FindStringSubmatch(path.Base(in.Dir)); m != nil {
		in.Source = in.Dir
		return m[1]
	}
	return componentVersion(r, in)
}

// componentVersion is the last resort: from CANN 8.5 on the components carry
// CANN's number (8.5.0.2.220); before that theirs start with 7 or lower.
func componentVersion(r rootfs.Root, in *Install) string {
	for _, name := range []string{"compiler", "toolkit", "runtime", "opp"} {
		p := in.Dir + "/" + name + "/version.info"
		info, ok := load(r, p)
		if !ok {
			continue
		}
		if v, err := version.Parse(version.CANN, info["version"]); err == nil && v.Major() >= 8 {
			in.Source = resolved(r, p)
			return v.Base(3)
		}
	}
	return ""
}

func resolved(r rootfs.Root, p string) string {
	if real, err := r.Resolve(p); err == nil {
		return real
	}
	return p
}

func load(r rootfs.Root, p string) (Info, bool) {
	b, err := r.ReadFile(p)
	if err != nil {
		return nil, false
	}
	return ParseInfo(b), true
}
