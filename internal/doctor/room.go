package doctor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/invar-ops/invar/internal/report"
)

// room judges the directories that a build writes to: space, and mounts on
// which nothing may run or be written.
func (j *judge) room() []Finding {
	var out []Finding
	for _, p := range j.f.Places {
		out = append(out, j.mount(p)...)
		out = append(out, j.space(p)...)
	}
	return out
}

func (j *judge) mount(p Place) []Finding {
	options := strings.Split(p.Options, ",")
	f := Finding{ID: p.Use + "-mount", Group: "environment", For: "build", Status: report.Fail, Requirement: report.Requirement{Name: p.Use + " directory", Want: "writable", Source: "mountinfo"}}
	move := map[string]string{"tmp": "export TMPDIR=/var/tmp", "prefix": "invar build --prefix DIR", "cann": "invar installs elsewhere by default: nothing to do"}[p.Use]
	level := "fail"
	if p.Use == "cann" {
		level = "warn"
	}
	switch {
	case slices.Contains(options, "ro"):
		f.OK = level == "warn"
		return []Finding{f.unmet(level, p.Path+" is mounted read-only ("+p.Mount+")", move)}
	case p.Error != "" && p.Use != "cann":
		return []Finding{f.unmet(level, p.Path+": "+p.Error, move)}
	case slices.Contains(options, "noexec") && p.Use == "tmp":
		f.Want = "programs may run in it"
		f.OK = true
		return []Finding{f.unmet("warn", p.Path+" is mounted noexec ("+p.Mount+"): run packages and cpp_extension unpack there and start what they unpacked: Permission denied", "export TMPDIR=/var/tmp, or mount -o remount,exec "+p.Mount)}
	case slices.Contains(options, "noexec") && p.Use == "prefix":
		f.Want = "libraries may be mapped from it"
		return []Finding{f.unmet("fail", p.Path+" is mounted noexec ("+p.Mount+"): failed to map segment from shared object", move)}
	}
	return nil
}

func (j *judge) space(p Place) []Finding {
	var out []Finding
	for _, d := range j.d.Floors.Disk {
		if d.Flavour != j.t.Flavour || d.Place != p.Use || p.Free < 0 {
			continue
		}
		if d.When == "environment" && (j.f.Python.HasTorch() || len(j.t.Python.Install) == 0) {
			continue
		}
		f := Finding{ID: p.Use + "-space", Group: "environment", For: "build", Status: report.Pass, Requirement: report.Requirement{
			Name: "disk", Want: size(d.Bytes) + " for " + d.Why, Got: size(p.Free) + " free in " + p.Path, OK: true, Source: d.Source,
		}}
		if p.Free < d.Bytes {
			f = f.unmet("fail", f.Got, map[string]string{"tmp": "export TMPDIR to a larger disk", "prefix": "invar build --prefix DIR on a larger disk"}[p.Use])
		}
		out = append(out, f)
	}
	return out
}

func size(n int64) string {
	if n < 1e9 {
		return fmt.Sprintf("%.0f MB", float64(n)/1e6)
	}
	return fmt.Sprintf("%.1f GB", float64(n)/1e9)
}
