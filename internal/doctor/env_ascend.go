package doctor

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/invar-ops/invar/internal/cann"
	"github.com/invar-ops/invar/internal/version"
)

const setEnvSource = "CANN installation guide; vllm-ascend issues 262 and 130"

// setEnv: a CANN that is not sourced, or only half: under "set -u" set_env.sh
// stops at the first variable that is unset.
func (j *judge) setEnv() []Finding {
	in, _, ok := j.active()
	if !ok {
		return nil
	}
	source := "source " + orText(in.SetEnv, in.Dir+"/set_env.sh")
	var set, unset []string
	for _, name := range []string{"ASCEND_TOOLKIT_HOME", "ASCEND_HOME_PATH", "ASCEND_OPP_PATH"} {
		if j.f.Env(name) == "" {
			unset = append(unset, name)
		} else {
			set = append(set, name)
		}
	}
	var out []Finding
	switch {
	case len(set) == 0:
		out = append(out, caution("set-env", "set_env.sh", "not sourced: "+strings.Join(unset, ", ")+" are unset. invar reads the script by itself; other programs stop with libhccl.so: cannot open shared object file",
			source+"   (non-interactive shells do not read .bashrc)", setEnvSource))
	case len(unset) > 0:
		out = append(out, caution("set-env-half", "set_env.sh", strings.Join(set, ", ")+" set, "+strings.Join(unset, ", ")+" not: the script stopped half-way, as it does under set -u",
			"set +u; "+source+"; set -u", setEnvSource))
	}
	if slices.Contains(j.f.Shell, "nounset") {
		out = append(out, caution("set-env-nounset", "SHELLOPTS", "nounset is exported: every script that sources set_env.sh stops at an unbound variable",
			"set +u before you source it, and do not export SHELLOPTS", setEnvSource))
	}
	return out
}

// cannPaths: variables that name nnae, nothing, or another tree than the rest.
func (j *judge) cannPaths() []Finding {
	var out []Finding
	for _, name := range cannVariables {
		v := j.f.Env(name)
		if v == "" {
			continue
		}
		n, seen := j.f.Named[name]
		switch {
		case !seen || n.Missing:
			out = append(out, stops("cann-path", name, "a directory", v+" does not exist"+brokenAt(j.f.CANNLinks, v),
				"unset "+name+" and source the set_env.sh of an installed CANN", "import of torch_npu: "+name+" does not exist"))
		case n.Empty:
			out = append(out, stops("cann-path", name, "a CANN tree", v+" is empty", "reinstall CANN or repair the link; sourcing set_env.sh again does not help", "vllm-ascend build notes"))
		case strings.Contains(n.Real, "/nnae/"):
			out = append(out, stops("cann-nnae", name, "the toolkit", v+" is nnae, which has no headers and another compiler",
				"source the set_env.sh of the toolkit last: "+j.toolkitEnv(), "vllm-ascend issue 1278"))
		}
	}
	return append(out, j.otherCANN()...)
}

func brokenAt(links []cann.Link, v string) string {
	for _, l := range links {
		if l.Path == path.Clean(v) {
			return " (a link to " + l.To + ")"
		}
	}
	return ""
}

func (j *judge) toolkitEnv() string {
	for _, in := range j.f.CANN {
		if in.Package == "toolkit" && in.SetEnv != "" {
			return in.SetEnv
		}
	}
	return "/usr/local/Ascend/ascend-toolkit/set_env.sh"
}

var treeOf = regexp.MustCompile(`^(.*/(?:ascend-toolkit|nnae|nnrt)/[^/]+|.*/cann(?:-[^/]+)?)(?:/|$)`)

// otherCANN: entries of search paths that belong to another CANN than the
// active one. They win, since what was sourced last does not remove them.
func (j *judge) otherCANN() []Finding {
	in, _, ok := j.active()
	if !ok {
		return nil
	}
	var out []Finding
	for _, name := range []string{"LD_LIBRARY_PATH", "PATH", "PYTHONPATH", "ASCEND_OPP_PATH"} {
		for _, p := range paths(j.f.Env(name)) {
			m := treeOf.FindStringSubmatch(p)
			if m == nil || j.sameTree(in, m[1]) {
				continue
			}
			out = append(out, caution("cann-mixed", name, p+" belongs to "+m[1]+", not to the CANN in use, "+in.Dir,
				"start a fresh shell and source one set_env.sh only: "+orText(in.SetEnv, j.toolkitEnv()), "works on 9.0, breaks on 9.1 with paths of 9.0"))
			break // one entry a variable says it
		}
	}
	return out
}

func (j *judge) sameTree(in cann.Install, dir string) bool {
	if in.Dir == dir || slices.Contains(in.Names, dir) || strings.HasPrefix(dir, in.Dir+"/") {
		return true
	}
	// A name that no Find has seen may be a link all the same.
	n, ok := j.f.Named[dir]
	return ok && n.Real == in.Dir
}

// cannTrees: several toolkits, and links that lead nowhere.
func (j *judge) cannTrees() []Finding {
	var out []Finding
	var names []string
	for _, in := range j.f.CANN {
		if in.Package == "toolkit" {
			names = append(names, orText(in.Version.String(), "unknown version")+" in "+in.Dir)
		}
	}
	if len(names) > 1 {
		in, why, _ := j.active()
		out = append(out, caution("cann-several", "CANN versions", fmt.Sprintf("%d: %s; in use: %s (%s)", len(names), strings.Join(names, ", "), in.Dir, why),
			"source the set_env.sh of the one you mean, or keep one", "LD_LIBRARY_PATH of another CANN"))
	}
	for _, l := range j.f.CANNLinks {
		out = append(out, caution("cann-link", "CANN link", l.Path+" leads to "+l.To+", which does not exist",
			"ln -sfn /usr/local/Ascend/cann-VERSION "+l.Path+", or reinstall", "build notes: the link cann resolved to an empty folder"))
	}
	return out
}

// noDriver: an import of torch_npu needs libascend_hal.so even to build.
func (j *judge) noDriver() []Finding {
	if j.f.Driver != nil && j.f.Driver.Library != "" {
		return nil
	}
	in, _, ok := j.active()
	if !ok {
		return nil
	}
	devlib := slices.ContainsFunc(paths(j.f.Env("LD_LIBRARY_PATH")), func(p string) bool { return path.Base(p) == "devlib" })
	auto := j.f.Env("TORCH_DEVICE_BACKEND_AUTOLOAD")
	if devlib && auto == "0" {
		return nil
	}
	var missing []string
	if !devlib {
		missing = append(missing, "devlib is not in LD_LIBRARY_PATH")
	}
	if auto != "0" {
		missing = append(missing, "TORCH_DEVICE_BACKEND_AUTOLOAD is not 0")
	}
	return []Finding{caution("no-driver", "no NPU driver", strings.Join(missing, ", ")+": import torch stops with libascend_hal.so: cannot open shared object file",
		"for builds only: export TORCH_DEVICE_BACKEND_AUTOLOAD=0 LD_LIBRARY_PATH="+in.Dir+"/"+orText(j.f.Arch, "$(uname -m)")+"-linux/devlib:$LD_LIBRARY_PATH", "vllm-ascend issues 661 and 1440")}
}

// torchBesideNPU: torch_npu aborts at import beside a CUDA build of torch.
func (j *judge) torchBesideNPU() []Finding {
	npu, ok := j.f.Python.Dists["torch-npu"]
	if !ok || j.f.Python.CUDA == "" {
		return nil
	}
	t := j.f.Python.Torch.Version
	public, _, _ := strings.Cut(t, "+")
	cmd := strings.Join(j.pipCommand(Advice{row: Row{Torch: public}}, []string{"torch"}), "; ")
	rule := j.d.Matrix.CUDATorch
	got := "torch " + t + " is built for CUDA " + j.f.Python.CUDA
	hint := cmd + " --force-reinstall --no-deps"
	if version.Within(version.PEP440, rule.Aborts, npu.Version) {
		return []Finding{stops("torch-cuda", "torch for torch_npu", "a build without CUDA", got+": torch_npu "+npu.Version+" aborts at import, "+rule.Text, hint, rule.Source)}
	}
	return []Finding{caution("torch-cuda", "torch for torch_npu", got+": torch_npu "+npu.Version+" works with it and loads gigabytes of CUDA libraries; torch_npu "+rule.Aborts+" aborts", hint, rule.Source)}
}

// vendors: operator packages that hide each other, or that the loader misses.
func (j *judge) vendors() []Finding {
	var out []Finding
	var with []Vendor
	for _, v := range j.f.Vendors {
		switch {
		case v.Library == "" && v.From == "ASCEND_CUSTOM_OPP_PATH":
			out = append(out, caution("vendor-empty", "ASCEND_CUSTOM_OPP_PATH", v.Dir+" holds no "+customLibrary+": it must name the folder of one vendor",
				"take it out, or name .../vendors/NAME", "lookup of aclnn names"))
		case v.Library != "" && !v.Listed:
			out = append(out, caution("vendor-unlisted", "vendors/config.ini", v.Name+" lies in "+v.Dir+" and load_priority does not name it: the loader does not see it",
				"add "+v.Name+" to load_priority= in "+v.From+" (no blanks, LF line ends)", "lookup of aclnn names"))
		case v.Library != "":
			with = append(with, v)
		}
	}
	if len(with) < 2 {
		return out
	}
	var order []string
	for _, v := range with {
		mark := ""
		if v.Invariant {
			mark = " (has " + strings.TrimSuffix(invariantSymbol, "GetWorkspaceSize") + ")"
		}
		order = append(order, v.Name+mark)
	}
	return append(out, caution("vendor-several", "libcust_opapi.so", fmt.Sprintf("%d packages bring a library of this name; asked in this order, symbol by symbol: %s", len(with), strings.Join(order, ", ")),
		"put batch_invariant first where two export one name: export ASCEND_CUSTOM_OPP_PATH=.../vendors/batch_invariant:$ASCEND_CUSTOM_OPP_PATH", "custom_transformer and batch_invariant ship the same file name"))
}

// atb: the first cxx_abi folder on the path wins; torch from 2.7 on has the
// new ABI only.
func (j *judge) atb() []Finding {
	var seen []string
	for _, p := range paths(j.f.Env("LD_LIBRARY_PATH")) {
		for part := range strings.SplitSeq(p, "/") {
			if (part == "cxx_abi_0" || part == "cxx_abi_1") && !slices.Contains(seen, part) {
				seen = append(seen, part)
			}
		}
	}
	if len(seen) == 0 {
		if j.f.Python.Dists["vllm-ascend"].Version == "" || len(j.f.ATB) == 0 {
			return nil
		}
		return []Finding{caution("atb", "nnal", "ATB "+j.f.ATB[0].Version+" is installed and not sourced: vllm-ascend stops with libatb.so: cannot open shared object file",
			"source /usr/local/Ascend/nnal/atb/set_env.sh --cxx_abi=1", "vllm-ascend issues 130 and 152")}
	}
	want := "cxx_abi_1"
	t := j.f.Python.Torch.Version
	if t != "" && less(t, "2.7") {
		want = "" // builds of either ABI exist
	}
	hint := "source /usr/local/Ascend/nnal/atb/set_env.sh --cxx_abi=1"
	switch {
	case want != "" && seen[0] != want:
		return []Finding{stops("atb-abi", "ATB ABI", want+" first in LD_LIBRARY_PATH", seen[0]+" comes first, and torch "+orText(t, "from 2.7 on")+" has the new C++ ABI", hint, "vllm-ascend issues 117 and 4284")}
	case len(seen) > 1:
		return []Finding{caution("atb-abi-leftover", "ATB ABI", seen[0]+" comes first and is right; entries of "+seen[1]+" after it are left over and do no harm", "", "vllm-ascend issue 4725")}
	}
	return nil
}
