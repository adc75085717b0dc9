package cuda

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/invar-ops/invar/internal/python"
	"github.com/invar-ops/invar/internal/run"
)

// Options say where to look for a toolkit.
type Options struct {
	Home   string        // --cuda-home; empty looks around
	Env    []string      // CUDA_HOME, CUDA_PATH and PATH are read from here
	Python python.Python // its nvidia/cu* folders are looked into
	Own    string        // folder of invar's own toolkits
	Only   bool          // take Own's and no other: it was just installed
	Torch  string        // torch.version.cuda, to choose among several
	Runner run.Runner
	Cache  string // file that remembers answers of nvcc
}

// A Candidate is a place that was looked at and not taken.
type Candidate struct {
	Home   string `json:"home"`
	From   string `json:"from"`
	Reason string `json:"reason"`
}

// A place is where a toolkit may be. One that the user named is binding:
// taking another one quietly would compile with what nobody asked for.
type place struct {
	home, from string
	binding    bool
}

// Find chooses the toolkit: what the user named (--cuda-home, CUDA_HOME,
// CUDA_PATH), else the first whole one of torch's major version on PATH, in
// /usr/local, in the chosen Python, of invar's own. Where none is whole the
// first with an nvcc is returned as it is, so that its faults can be said; the
// zero Toolkit means that there is no nvcc at all.
func Find(ctx context.Context, o Options) (Toolkit, []Candidate, error) {
	var seen []Candidate
	var broken Toolkit
	visited := map[string]bool{}
	for _, p := range places(o) {
		real, err := filepath.EvalSymlinks(p.home)
		if err != nil || !isDir(real) {
			if p.binding {
				return Toolkit{Home: p.home, From: p.from, Fault: "no such folder"}, seen, nil
			}
			continue
		}
		if visited[real] {
			continue
		}
		visited[real] = true
		t, err := Inspect(ctx, p.home, p.from, o.Env, o.Runner, o.Cache)
		if err != nil {
			return Toolkit{}, seen, err
		}
		reason := t.unfit(o.Torch)
		if p.binding || reason == "" {
			if broken.Home != "" {
				seen = append(seen, Candidate{broken.Home, broken.From, broken.unfit(o.Torch)})
			}
			return t, seen, nil
		}
		if t.NVCC() != "" && broken.Home == "" {
			broken = t
			continue
		}
		if t.NVCC() != "" || len(t.Parts) > 2 || strings.HasPrefix(reason, "ptxas") { // not just torch's own libraries
			seen = append(seen, Candidate{p.home, p.from, reason})
		}
	}
	return broken, seen, nil
}

func places(o Options) []place {
	own, _ := filepath.Glob(filepath.Join(escape(o.Own), "*", "lib", "python3*", "site-packages", "nvidia", "cu[0-9]*"))
	slices.Reverse(own) // newest first
	var out []place
	if o.Only {
		for _, dir := range own {
			out = append(out, place{dir, "invar's own", false})
		}
		return out
	}
	for _, p := range []place{{o.Home, "--cuda-home", true}, {run.Getenv(o.Env, "CUDA_HOME"), "CUDA_HOME", true}, {run.Getenv(o.Env, "CUDA_PATH"), "CUDA_PATH", true}} {
		if p.home != "" {
			return []place{p}
		}
	}
	if nvcc, err := run.LookPath("nvcc", o.Env); err == nil {
		if real, err := filepath.EvalSymlinks(nvcc); err == nil {
			out = append(out, place{filepath.Dir(filepath.Dir(real)), "PATH", false})
		}
	}
	out = append(out, place{"/usr/local/cuda", "/usr/local", false})
	versions, _ := filepath.Glob("/usr/local/cuda-*")
	slices.Reverse(versions)
	for _, dir := range versions {
		out = append(out, place{dir, "/usr/local", false})
	}
	for _, dir := range o.Python.Paths {
		for _, pattern := range []string{"cu[0-9]*", "cuda_nvcc"} {
			hits, _ := filepath.Glob(filepath.Join(escape(dir), "nvidia", pattern))
			for _, h := range hits {
				out = append(out, place{h, "the chosen Python", false})
			}
		}
	}
	for _, dir := range own {
		out = append(out, place{dir, "invar's own", false})
	}
	return out
}

// unfit says why a toolkit that nobody named is passed over.
func (t Toolkit) unfit(torch string) string {
	switch {
	case t.NVCC() == "" && t.Parts["ptxas"] != "":
		return "ptxas and no nvcc: it is not a compiler"
	case t.NVCC() == "":
		return "no nvcc"
	case t.Fault != "":
		return "nvcc does not answer: " + t.Fault
	case len(t.lacks(false)) > 0:
		return "without " + strings.Join(t.lacks(false), ", ")
	case torch != "" && majorOf(t.Version) != majorOf(torch):
		return "CUDA " + t.Version + ", torch has " + torch
	case t.Headers != "" && MinorOf(t.Version) != t.Headers:
		return "nvcc " + t.Version + " on headers of " + t.Headers
	}
	return ""
}

func isDir(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.IsDir()
}
