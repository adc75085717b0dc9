package doctor

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/invar-ops/invar/internal/cann"
	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/version"
)

// active is the CANN that a build here would use: the one the environment
// names, else the one behind the usual links, else the newest toolkit.
func (j *judge) active() (cann.Install, string, bool) {
	for _, name := range []string{"ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME"} {
		v := j.f.Env(name)
		if v == "" {
			continue
		}
		for _, in := range j.f.CANN {
			if in.Dir == path.Clean(v) || slices.Contains(in.Names, path.Clean(v)) {
				return in, name, true
			}
		}
	}
	var best cann.Install
	why := "the newest"
	for _, in := range j.f.CANN {
		if in.Package != "toolkit" {
			continue
		}
		linked := slices.ContainsFunc(in.Names, func(n string) bool { return path.Base(n) == "latest" || path.Base(n) == "cann" })
		if linked {
			return in, in.Names[0], true
		}
		if best.Dir == "" || version.Less(best.Version, in.Version) {
			best = in
		}
	}
	return best, why, best.Dir != ""
}

func judgeCANN(j *judge, n Need) Finding {
	f := n.finding()
	in, why, ok := j.active()
	if !ok {
		got := "not found below /usr/local/Ascend"
		if len(j.f.CANN) > 0 {
			got = "only " + j.f.CANN[0].Package + " in " + j.f.CANN[0].Dir
		}
		return f.unmet(n.Level, got, j.cannCommand(j.wantedCANN()))
	}
	if in.Version.IsZero() {
		return f.unclear(in.Dir + ", and no file there tells its version")
	}
	f.Got = fmt.Sprintf("%s in %s (%s)", in.Version, in.Dir, why)
	r, err := version.ParseRange(version.CANN, n.Want, version.AllowPre)
	if n.Want != "" && (err != nil || !r.Contains(in.Version)) {
		return f.unmet(n.Level, f.Got, j.cannCommand(j.wantedCANN()))
	}
	if !in.Release {
		f = f.unmet("warn", f.Got+", a build before the release"+innerText(in), "install the released "+in.Version.Release()+": early builds lack functions of the release")
	}
	return f
}

func innerText(in cann.Install) string {
	if in.Inner == "" {
		return ""
	}
	return " (" + in.Inner + ")"
}

// wantedCANN is the version of the nearest row.
func (j *judge) wantedCANN() string {
	all := j.d.Matrix.nearest(j.rows(), j.have())
	if len(all) == 0 {
		return ""
	}
	return all[0].row.CANN
}

// cannCommand says how the version is installed for the target's SoC.
func (j *judge) cannCommand(v string) string {
	for _, p := range j.d.Matrix.CANN {
		if p.Target != j.t.Name || v == "" {
			continue
		}
		arch := orText(j.f.Arch, "$(uname -m)")
		return fmt.Sprintf("install CANN %s: ./Ascend-cann-toolkit_%s_linux-%s.run --full, source its set_env.sh, then ./Ascend-cann-%s-ops_%s_linux-%s.run --install; or build in an image quay.io/ascend/cann:%s-%s-ubuntu22.04-py3.11",
			v, v, arch, p.Package, v, arch, strings.ToLower(v), p.Image)
	}
	return "install the CANN toolkit, then the operator package of this SoC"
}

func judgeCANNHeaders(j *judge, n Need) Finding {
	f := n.finding()
	in, _, ok := j.active()
	if !ok {
		return f.unmet(n.Level, "no CANN", j.cannCommand(j.wantedCANN()))
	}
	if !in.Headers {
		return f.unmet(n.Level, "not in "+in.Dir+" ("+in.Package+")", "install the toolkit, not nnae or nnrt: "+j.cannCommand(orText(in.Version.String(), j.wantedCANN())))
	}
	return f.gotf("%s", in.Dir)
}

func judgeCANNCompiler(j *judge, n Need) Finding {
	f := n.finding()
	in, _, ok := j.active()
	if !ok {
		return f.unmet(n.Level, "no CANN", j.cannCommand(j.wantedCANN()))
	}
	if !in.Compiler {
		return f.unmet(n.Level, "not in "+in.Dir, "./Ascend-cann-toolkit_VERSION_linux-ARCH.run --full brings the compiler")
	}
	return f.gotf("%s", in.Dir)
}

func judgeNPUDriver(j *judge, n Need) Finding {
	f := n.finding()
	f.Want = "installed, with libascend_hal.so"
	for _, d := range j.d.Floors.Drivers {
		if d.Target == j.t.Name && d.Vendor == "ascend" {
			f.Want, f.Source = d.Product+" "+d.Want+", with libascend_hal.so", d.Note+" ("+d.Source+")"
		}
	}
	d := j.f.Driver
	if d == nil {
		return f.unmet(n.Level, "none: probe levels 6 and 7 cannot run here, and an import of torch_npu needs devlib", j.driverHint())
	}
	f.Got = orText(d.Version.String(), "unknown version") + " in " + d.Dir
	if d.Library == "" {
		return f.unmet(n.Level, f.Got+", without libascend_hal.so", "mount the whole folder: -v "+d.Dir+"/lib64:"+d.Dir+"/lib64:ro")
	}
	for _, floor := range j.d.Floors.Drivers {
		if floor.Target != j.t.Name || floor.Vendor != "ascend" {
			continue
		}
		if r, err := version.ParseRange(version.Driver, floor.Want, version.AllowPre); err == nil && !r.Contains(d.Version) {
			return f.unmet(floor.Level, f.Got+"; the floor is "+floor.Note, "install driver and firmware "+floor.Want+" (HDK) and reboot")
		}
	}
	return f
}

func (j *judge) driverHint() string {
	if j.f.Container != "" {
		return "start the container with the driver: invar doctor " + j.t.Name + " on the host prints the flags"
	}
	in, _, ok := j.active()
	if !ok {
		return "install the HDK driver and firmware of this card; not needed to build"
	}
	return "not needed to build; to import torch_npu here: export TORCH_DEVICE_BACKEND_AUTOLOAD=0 LD_LIBRARY_PATH=" + in.Dir + "/" + orText(j.f.Arch, "$(uname -m)") + "-linux/devlib:$LD_LIBRARY_PATH"
}

// rows are those that fit the target: a batch-invariant mode, and the ranges
// of target.yaml.
func (j *judge) rows() []Row {
	var out []Row
	for _, r := range j.d.Matrix.Usable(j.t.Name) {
		if j.rowFits(r) {
			out = append(out, r)
		}
	}
	return out
}

func (j *judge) rowFits(r Row) bool {
	if want := j.t.Python.Torch; want != "" && !version.Within(version.PEP440, want, r.Torch) {
		return false
	}
	for _, n := range j.t.Requires {
		switch {
		case n.Want == "":
		case n.Item == "cann":
			if !version.Within(version.CANN, n.Want, r.CANN) {
				return false
			}
		case n.Item == "torch-npu":
			if !version.Within(version.PEP440, n.Want, r.TorchNPU) {
				return false
			}
		}
	}
	return true
}

// have is what is installed, by column.
func (j *judge) have() Have {
	h := Have{}
	for _, c := range j.d.Matrix.Components {
		if c.Dist != "" {
			h[c.Key] = j.f.Python.Dists[c.Dist].Version
		}
	}
	if v := j.f.Python.Torch.Version; v != "" {
		h["torch"] = v
	}
	if j.f.Python.Exe != "" {
		h["python"] = j.f.Python.Version
	}
	if in, _, ok := j.active(); ok {
		h["cann"] = in.Version.String()
	}
	return h
}

// matrix finds the nearest rows and judges the combination.
func (j *judge) matrix() ([]Advice, []Finding) {
	f := Finding{ID: "matrix", Group: "versions", For: "build", Status: report.Pass, Requirement: report.Requirement{
		Name: "release matrix", Want: "a published combination with a batch-invariant mode", Source: j.d.Matrix.Source, OK: true,
	}}
	have := j.have()
	all := j.d.Matrix.nearest(j.rows(), have)
	if len(all) == 0 {
		return nil, []Finding{f.unclear("no row of the matrix fits the ranges of " + j.t.Name)}
	}
	all = all[:min(3, len(all))]
	for i := range all {
		all[i].Commands = j.commands(all[i])
	}
	best := all[0]
	f.Got = "vllm-ascend " + best.Row + ": " + best.Phrase()
	if old := j.olderRow(have); old != "" {
		f.Got = "the combination of vllm-ascend " + old + ", which has no batch-invariant mode here; nearest: " + f.Got
	}
	switch hint := strings.Join(best.Commands, "; "); {
	case best.hard > 0:
		f = f.unmet("fail", f.Got, hint)
	case best.soft > 0:
		f = f.unmet("warn", f.Got, hint)
	}
	out := []Finding{f}
	for _, note := range best.Notes {
		out = append(out, Finding{ID: "references", Group: "versions", For: "build", Status: Warn, Requirement: report.Requirement{
			Name: "references", Want: "one answer", Got: note, OK: true, Source: j.d.Matrix.Source,
			Hint: "prefer what the image of that release has, if you build in it",
		}})
	}
	return all, append(append(out, j.pair()...), j.firmware()...)
}

// firmware: the driver says which firmware it takes, as [7.0.0,8.9.9].
func (j *judge) firmware() []Finding {
	d, fw := j.f.Driver, j.f.Firmware
	if d == nil || fw == nil || d.Firmware == "" || fw.Version.IsZero() {
		return nil
	}
	f := Finding{ID: "firmware", Group: "versions", For: "probe", Status: report.Pass, Requirement: report.Requirement{
		Name: "NPU firmware", Want: d.Firmware, Got: fw.Version.String() + " in " + fw.Dir, Source: "compatible_version_fw in " + d.Source, OK: true,
	}}
	low, high, ok := strings.Cut(strings.Trim(d.Firmware, "[] "), ",")
	r, err := version.ParseRange(version.Driver, ">= "+low+", <= "+high, version.AllowPre)
	switch {
	case !ok || err != nil:
		return []Finding{f.unclear("a range that cannot be read")}
	case !r.Contains(version.MustParse(version.Driver, fw.Version.Base(3))):
		return []Finding{f.unmet("warn", f.Got, "install the firmware of the same HDK as the driver "+d.Version.String()+", then reboot")}
	}
	return []Finding{f}
}

// olderRow is the row without a batch-invariant mode that matches exactly.
func (j *judge) olderRow(have Have) string {
	if have["torch_npu"] == "" || have["cann"] == "" {
		return ""
	}
	n := len(j.d.Matrix.Usable(j.t.Name))
	for _, a := range j.d.Matrix.nearest(j.d.Matrix.Rows[n:], have) {
		if a.hard == 0 && a.soft == 0 {
			return a.Row
		}
	}
	return ""
}

// pair: torch_npu is built for exactly one torch.
func (j *judge) pair() []Finding {
	npu, ok := j.f.Python.Dists["torch-npu"]
	if !ok || !j.f.Python.HasTorch() {
		return nil
	}
	f := Finding{ID: "torch-pair", Group: "versions", For: "build", Status: report.Pass, Requirement: report.Requirement{
		Name: "torch and torch_npu", OK: true, Source: "torch_npu is built for one exact torch",
	}}
	t, err1 := version.Parse(version.PEP440, j.f.Python.Torch.Version)
	n, err2 := version.Parse(version.PEP440, npu.Version)
	if err1 != nil || err2 != nil {
		return []Finding{f.unclear(j.f.Python.Torch.Version + " and " + npu.Version)}
	}
	f.Want, f.Got = "torch "+n.Base(3), "torch "+t.String()+" with torch_npu "+n.String()
	if t.Base(3) != n.Base(3) {
		return []Finding{f.unmet("fail", f.Got, strings.Join(j.pipCommand(Advice{row: Row{Torch: n.Base(3), TorchNPU: n.String()}}, []string{"torch", "torch_npu"}), "; ")+
			"; with the wrong pair the import stops with an undefined symbol")}
	}
	return []Finding{f}
}
