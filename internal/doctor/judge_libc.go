package doctor

import (
	"regexp"
	"strings"

	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/version"
)

var manylinux = regexp.MustCompile(`manylinux(?:_(\d+_\d+)|(1|2010|2014))_`)

// libc compares the C and C++ libraries of the root with what the wheels need:
// the tag of an installed torch, else the floor of the wheels that would come.
func (j *judge) libc() []Finding {
	f := Finding{ID: "glibc", Group: "requirement", For: "install", Status: report.Pass, Requirement: report.Requirement{Name: "glibc", OK: true}}
	want, cxx, what := j.libcFloor()
	if want == "" {
		return nil
	}
	f.Want, f.Source = ">= "+want, what
	s := j.f.System
	if s.Libc == "musl" {
		return []Finding{f.unmet("fail", "musl: wheels of torch are built for glibc", "use a base image with glibc, such as debian, ubuntu or openeuler")}
	}
	if s.Glibc == "" {
		return []Finding{f.unclear("no libc.so.6 below " + j.f.Root)}
	}
	f.Got = s.Glibc + " (" + s.LibcFile + ")"
	if !version.Within(version.Plain, f.Want, s.Glibc) {
		return []Finding{f.unmet("fail", f.Got, "build on a newer system or in a newer image; a wheel for "+want+" does not load here")}
	}
	return append([]Finding{f}, j.libstdcxx(cxx, what)...)
}

func (j *judge) libstdcxx(want, what string) []Finding {
	if want == "" {
		return nil
	}
	f := Finding{ID: "libstdcxx", Group: "requirement", For: "install", Status: report.Pass, Requirement: report.Requirement{
		Name: "libstdc++", Want: "GLIBCXX_" + want, Source: what, OK: true,
	}}
	have := j.f.System.GLIBCXX
	if have == "" { // a compiler brings it, and so does pip's torch need it
		return []Finding{f.unmet("warn", "no libstdc++.so.6", "it comes with the compiler: "+j.install("c++"))}
	}
	f.Got = "GLIBCXX_" + have
	if !version.Within(version.Plain, ">= "+want, have) {
		return []Finding{f.unmet("fail", f.Got, "update libstdc++ (GCC run time), or build in an older image")}
	}
	return []Finding{f}
}

// libcFloor is the glibc and GLIBCXX that wheels may need, and why.
func (j *judge) libcFloor() (glibc, cxx, what string) {
	if m := manylinux.FindStringSubmatch(j.f.Python.Tag); m != nil {
		for _, p := range j.d.Floors.Policy {
			if (m[1] != "" && p.Tag == m[1]) || (m[2] != "" && p.Alias == "manylinux"+m[2]) {
				return p.Glibc, p.GLIBCXX, "wheel tag " + j.f.Python.Tag + " of the installed torch; " + p.Source
			}
		}
		return strings.ReplaceAll(m[1], "_", "."), "", "wheel tag " + j.f.Python.Tag + " of the installed torch"
	}
	if j.f.Python.HasTorch() {
		return "", "", "" // built here, or by a distribution for itself
	}
	for _, w := range j.d.Floors.Wheels {
		if w.Dist != "torch" {
			continue
		}
		for _, p := range j.d.Floors.Policy {
			if p.Glibc == w.Glibc {
				return w.Glibc, p.GLIBCXX, w.Source
			}
		}
	}
	return "", "", ""
}
