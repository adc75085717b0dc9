package oppkg

import (
	"slices"
	"strings"

	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/version"
)

// A Want is what a package has to be for one host and target.
type Want struct {
	Target  string   // "ascend910b"
	Kernels []string // names of kernel folders that serve it
	Arch    string   // of the host: "x86_64"
	CANN    string   // installed version
	Vendors []string // names that packages of this kind have
	Skew    bool     // another CANN is all right
}

// Judge compares p with want. It returns every requirement, met or not.
func (p Package) Judge(want Want) []report.Requirement {
	return []report.Requirement{p.soc(want), p.arch(want), p.cann(want), p.vendor(want)}
}

func (p Package) soc(w Want) report.Requirement {
	r := report.Requirement{
		Name: "SoC of the run package", Want: "kernels for " + strings.Join(w.Kernels, " or "),
		Got: "kernels for " + list(p.Kernels), Source: "folders in " + kernels,
		Hint: "take the package of this SoC: invar plan " + w.Target + " names it",
	}
	r.OK = slices.ContainsFunc(p.Kernels, func(k string) bool { return slices.Contains(w.Kernels, k) })
	return r
}

func (p Package) arch(w Want) report.Requirement {
	r := report.Requirement{
		Name: "architecture of the run package", Want: w.Arch, Got: p.Arch, Source: Library,
		Hint: "take the package whose name ends in linux." + w.Arch + ".run",
	}
	r.OK = p.Arch == w.Arch
	// A library of this machine beside host libraries of another one only.
	if r.OK && len(p.Arches) > 0 && !slices.Contains(p.Arches, w.Arch) {
		r.OK, r.Got = false, "host libraries for "+list(p.Arches)
	}
	return r
}

// cann: operators work with the CANN release that compiled them. The patch
// level may differ.
func (p Package) cann(w Want) report.Requirement {
	r := report.Requirement{
		Name: "CANN of the run package", Want: "compiled with CANN " + w.CANN, Got: "compiled with CANN " + p.CANN, Source: "version.info",
		Hint: "take a package for this CANN, or install CANN " + p.CANN + "; --allow-version-skew goes on all the same",
	}
	if p.CANN == "" {
		r.Got, r.OK = "it does not tell", true // the probe says whether it works
		return r
	}
	if w.Skew {
		r.Want, r.OK = "any, because of --allow-version-skew", true
		return r
	}
	a, errA := version.Parse(version.CANN, p.CANN)
	b, errB := version.Parse(version.CANN, w.CANN)
	if errA != nil || errB != nil {
		r.OK = p.CANN == w.CANN
		return r
	}
	r.OK = a.Major() == b.Major() && a.Minor() == b.Minor()
	return r
}

func (p Package) vendor(w Want) report.Requirement {
	r := report.Requirement{
		Name: "vendor of the run package", Want: strings.Join(w.Vendors, " or "), Got: p.Vendor, Source: "folder in " + vendors,
		Hint: "this package holds other operators; vllm-ascend's own are custom_transformer",
	}
	r.OK = slices.Contains(w.Vendors, p.Vendor)
	return r
}

func list(names []string) string {
	if len(names) == 0 {
		return "nothing"
	}
	return strings.Join(names, ", ")
}
