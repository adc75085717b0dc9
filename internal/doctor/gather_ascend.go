package doctor

import (
	"path"
	"slices"
	"strings"

	"github.com/invar-ops/invar/internal/cann"
	"github.com/invar-ops/invar/internal/elffile"
)

// customLibrary is the file that every custom operator package brings: the
// name is the same in all of them, which is how one hides another.
const customLibrary = "op_api/lib/libcust_opapi.so"

// invariantSymbol tells the batch-invariant package from its neighbours.
const invariantSymbol = "aclnnMmBatchInvariantGetWorkspaceSize"

// cannVariables name trees of CANN in the environment.
var cannVariables = []string{"ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME", "ASCEND_OPP_PATH", "ASCEND_AICPU_PATH", "TOOLCHAIN_HOME", "ATB_HOME_PATH"}

func (g *gatherer) ascend(f *Facts) {
	var extra []string
	for _, name := range []string{"ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME"} {
		if v := g.env[name]; v != "" {
			extra = append(extra, v)
		}
	}
	f.CANN, f.CANNLinks = cann.Find(g.root, extra...)
	if d, ok := cann.ReadDriver(g.root); ok {
		f.Driver = &d
	}
	if d, ok := cann.ReadFirmware(g.root); ok {
		f.Firmware = &d
	}
	seen := map[string]bool{}
	for _, dir := range append(g.root.Glob("/usr/local/Ascend/nnal/atb/*"), g.root.Glob("/root/Ascend/nnal/atb/*")...) {
		real, err := g.root.Resolve(dir)
		if err != nil || !g.root.IsDir(real) || seen[real] {
			continue
		}
		seen[real] = true
		f.ATB = append(f.ATB, ATB{Dir: real, Version: cann.ATB(g.root, real).String()})
	}
	f.Vendors = g.vendors(f.CANN)
}

// vendors lists the custom operator packages in the order in which the loader
// asks them: ASCEND_CUSTOM_OPP_PATH, then those of config.ini, then what lies
// there and is not listed.
func (g *gatherer) vendors(trees []cann.Install) []Vendor {
	var out []Vendor
	for dir := range strings.SplitSeq(g.env["ASCEND_CUSTOM_OPP_PATH"], ":") {
		if dir != "" {
			out = append(out, g.vendor(dir, "ASCEND_CUSTOM_OPP_PATH", true))
		}
	}
	for _, opp := range g.oppDirs(trees) {
		config := opp + "/vendors/config.ini"
		listed := g.loadPriority(config)
		for _, name := range listed {
			out = append(out, g.vendor(opp+"/vendors/"+name, config, true))
		}
		for _, name := range g.root.ReadDir(opp + "/vendors") {
			dir := opp + "/vendors/" + name
			if !slices.Contains(listed, name) && g.root.IsDir(dir) {
				out = append(out, g.vendor(dir, config, false))
			}
		}
	}
	return out
}

// oppDirs are the operator folders that a process here would use: the one of
// the environment, else that of every tree.
func (g *gatherer) oppDirs(trees []cann.Install) []string {
	if v := g.env["ASCEND_OPP_PATH"]; v != "" {
		return []string{path.Clean(v)}
	}
	var out []string
	for _, t := range trees {
		out = append(out, t.Dir+"/opp")
	}
	return out
}

// loadPriority reads config.ini the way the loader does: one key without
// blanks around "=", names split at commas, the first line counts.
func (g *gatherer) loadPriority(config string) []string {
	b, err := g.root.ReadFile(config)
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(b)) {
		v, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "load_priority=")
		if !ok {
			continue
		}
		var out []string
		for name := range strings.SplitSeq(v, ",") {
			if name != "" {
				out = append(out, name)
			}
		}
		return out
	}
	return nil
}

func (g *gatherer) vendor(dir, from string, listed bool) Vendor {
	v := Vendor{Name: path.Base(dir), Dir: path.Clean(dir), From: from, Listed: listed}
	lib := v.Dir + "/" + customLibrary
	host, err := g.root.Host(lib)
	if err != nil || !g.root.IsFile(lib) {
		return v
	}
	v.Library = lib
	if e, err := elffile.Read(host); err == nil {
		v.Invariant = e.Exported(invariantSymbol)
	}
	return v
}
