package probe

import (
	"debug/elf"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/invar-ops/invar/internal/elffile"
	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/run"
)

// libraries checks every shared library of the generation as the loader would:
// architecture, needed libraries, symbol versions of those.
func (p *prober) libraries() ([]report.Check, error) {
	loader := elffile.NewLoader(p.Root.Dir(), run.Getenv(p.Env, "LD_LIBRARY_PATH"))
	// Python imports torch before it opens the extension, so torch's libraries
	// are in the process by their names.
	for _, dir := range p.receipt.Python.Paths {
		for _, path := range p.Root.Glob(filepath.Join(dir, "torch*", "lib", "*.so*")) { // torch_npu too
			loader.Loaded[filepath.Base(path)] = path
		}
	}
	var out []report.Check
	for _, f := range p.receipt.Files {
		if f.Link != "" || !strings.Contains(filepath.Base(f.Path), ".so") {
			continue
		}
		out = append(out, p.library(loader, filepath.Join(p.receipt.Dir(), f.Path)))
	}
	if len(out) == 0 {
		out = append(out, check(Files, "libraries", false, "a shared library of each stage", "none in the receipt"))
	}
	return out, nil
}

func (p *prober) library(loader *elffile.Loader, path string) report.Check {
	name := "library " + filepath.Base(path)
	want := "loadable on this " + p.arch() + " host"
	f, err := p.readELF(path)
	if err != nil {
		c := check(Files, name, false, want, err.Error())
		c.Hint = "install it again: invar build"
		return c
	}
	if f.Arch != p.arch() {
		c := check(Files, name, false, want, p.within(path)+" is for "+f.Arch)
		c.Hint = "a bundle of another architecture is installed: build on this host"
		return c
	}
	links := loader.Tree(f)
	var wrong []string
	for _, l := range links {
		if l.Path == "" {
			wrong = append(wrong, fmt.Sprintf("%s, which %s needs, is not found%s", l.Name, p.within(l.From), because(l.Reason)))
		}
	}
	wrong = append(wrong, p.tooNew(f, links)...)
	if len(wrong) > 0 {
		c := check(Files, name, false, want, strings.Join(wrong, "; "))
		c.Hint = "build on this host, or on one with an older C library; libraries are looked for as ld.so(8) says"
		return c
	}
	return check(Files, name, true, want, fmt.Sprintf("%d needed libraries found%s", len(links), newest(f)))
}

// readELF reads a library of the installation by its path in the root.
func (p *prober) readELF(path string) (*elffile.File, error) {
	host, err := p.Root.Host(path)
	if err != nil {
		return nil, err
	}
	f, err := elffile.Read(host)
	if err == nil {
		f.Path = path
	}
	return f, err
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return " (" + reason + ")"
}

// tooNew lists the symbol versions that f needs and the libraries found do not
// have: GLIBC and GLIBCXX of a newer system.
func (p *prober) tooNew(f *elffile.File, links []elffile.Link) []string {
	var out []string
	have := map[string][]string{}
	for _, v := range f.Wants {
		i := slices.IndexFunc(links, func(l elffile.Link) bool { return l.Name == v.Library })
		if i < 0 || links[i].Path == "" {
			continue
		}
		path := links[i].Path
		if _, ok := have[path]; !ok {
			have[path] = p.defined(path)
		}
		if !slices.Contains(have[path], v.Name) {
			out = append(out, fmt.Sprintf("%s is not in %s", v.Name, path))
		}
	}
	return out
}

// defined lists the versions that a library defines; a version may have no symbol.
func (p *prober) defined(path string) []string {
	host, err := p.Root.Host(path)
	if err != nil {
		return nil
	}
	f, err := elf.Open(host)
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }()
	versions, err := f.DynamicVersions()
	if err != nil {
		return nil
	}
	var out []string
	for _, v := range versions {
		out = append(out, v.Name)
	}
	return out
}

// newest names the highest GLIBC version needed, for people.
func newest(f *elffile.File) string {
	best := ""
	for _, v := range f.Wants {
		if rest, ok := strings.CutPrefix(v.Name, "GLIBC_2."); ok && len(rest) >= len(best) {
			best = max(best, rest)
		}
	}
	if best == "" {
		return ""
	}
	return ", needs glibc 2." + best
}
