package doctor

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/invar-ops/invar/internal/report"
)

// environment finds the settings behind known failures. The environment of a
// root that is not running is not known; what lies in files is.
func (j *judge) environment() []Finding {
	var out []Finding
	add := func(fs ...Finding) { out = append(out, fs...) }
	if j.f.EnvKnown {
		add(j.variables()...)
		add(j.tls()...)
		add(j.libraryPath()...)
	}
	add(j.pip()...)
	add(j.scripts()...)
	if j.t.Flavour == "ascend" {
		add(j.cannTrees()...)
		add(j.vendors()...)
		add(j.torchBesideNPU()...)
		if j.f.EnvKnown {
			add(j.setEnv()...)
			add(j.cannPaths()...)
			add(j.noDriver()...)
			add(j.atb()...)
		}
	}
	if j.t.Flavour == "cuda" && j.f.EnvKnown {
		add(j.cudaHome()...)
	}
	return out
}

// caution makes a finding about the environment that does not stop a build.
func caution(id, name, got, hint, source string) Finding {
	return Finding{ID: id, Group: "environment", For: "build", Status: Warn, Requirement: report.Requirement{
		Name: name, Got: got, Hint: hint, Source: source, OK: true,
	}}
}

// stops makes a finding about the environment that stops a build.
func stops(id, name, want, got, hint, source string) Finding {
	return Finding{ID: id, Group: "environment", For: "build", Status: report.Fail, Requirement: report.Requirement{
		Name: name, Want: want, Got: got, Hint: hint, Source: source,
	}}
}

func (j *judge) variables() []Finding {
	var out []Finding
	for _, v := range j.d.Environment {
		if !slices.Contains(v.Flavours, j.t.Flavour) || !j.f.Has(v.Name) {
			continue
		}
		value := j.f.Env(v.Name)
		bad := v.Wrong != "" && regexp.MustCompile(v.Wrong).MatchString(value)
		bad = bad || v.Allowed != "" && !regexp.MustCompile(v.Allowed).MatchString(value)
		if !bad {
			continue
		}
		got := fmt.Sprintf("%s=%q: %s", v.Name, value, v.Means)
		if v.Level == "fail" {
			out = append(out, stops(v.ID, v.Name, v.Allowed, got, v.Hint, v.Source))
			continue
		}
		out = append(out, caution(v.ID, v.Name, got, v.Hint, v.Source))
	}
	return out
}

// libraryPath looks for an older libstdc++ (of conda, mostly) that comes
// before the system's.
func (j *judge) libraryPath() []Finding {
	var out []Finding
	for _, dir := range paths(j.f.Env("LD_LIBRARY_PATH")) {
		have, ok := j.f.LibraryDirs[dir]
		if ok && have != "" && j.f.System.GLIBCXX != "" && less(have, j.f.System.GLIBCXX) {
			out = append(out, caution("libstdcxx-path", "LD_LIBRARY_PATH",
				dir+" holds a libstdc++ with GLIBCXX_"+have+", older than the system's GLIBCXX_"+j.f.System.GLIBCXX+", and comes first",
				"take "+dir+" out of LD_LIBRARY_PATH, or put the system's folder before it", "GLIBCXX_3.4.x not found at import"))
		}
	}
	return out
}

// paths splits a search path and drops empty entries.
func paths(v string) []string {
	var out []string
	for p := range strings.SplitSeq(v, ":") {
		if p != "" {
			out = append(out, path.Clean(p))
		}
	}
	return out
}

func (j *judge) cudaHome() []Finding {
	var out []Finding
	for _, name := range []string{"CUDA_HOME", "CUDA_PATH"} {
		v := j.f.Env(name)
		if v == "" {
			continue
		}
		i := slices.IndexFunc(j.f.Toolkits, func(t Toolkit) bool { return t.Real == j.f.Named[name].Real && t.NVCC != "" })
		if i < 0 {
			out = append(out, stops("cuda-home", name, "a toolkit with bin/nvcc", v+" has none",
				"unset "+name+", or export it to a toolkit: "+j.compilerHint(), "torch takes it before nvcc on PATH"))
		}
	}
	return out
}
