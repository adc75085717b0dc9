package probe

import (
	"context"
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/invar-ops/invar/internal/elffile"
	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/run"
)

// wiringOutside is level 4 as far as files tell: stage 2 will open the stage 1
// of this installation and finds in it what it looks up.
func (p *prober) wiringOutside(context.Context) ([]report.Check, error) {
	const process = "the libraries of a process"
	if p.onNPU() {
		out := []report.Check{p.wins("lookup", p.lookup())}
		for _, dir := range p.receipt.Python.Paths {
			own := path.Join(dir, "vllm_ascend", "_cann_ops_custom", "vendors", "custom_transformer")
			if p.Root.IsDir(own) {
				out = append(out, p.wins("lookup in vllm-ascend's workers", p.lookup().Prepend(own)))
			}
		}
		p.contrary()
		return append(out, skipped(Wiring, process, fromOutside)), nil
	}
	out := p.pair("stage 1", p.stage2(p.target.Stage2.Library), p.stage1(), "INVAR_CPU_LIBRARY")
	if c := p.target.CUDA; c != nil && c.Stage2.Library != "" {
		out = append(out, p.pair("GPU stage 1", p.stage2(c.Stage2.Library), p.gpuLibrary(), "INVAR_CUDA_LIBRARY")...)
	}
	return append(out, p.versionsOfFiles(), skipped(Wiring, process, fromOutside)), nil
}

// stage2 is where the receipt put a library of the wheel.
func (p *prober) stage2(library string) string {
	return filepath.Join(p.receipt.Site(), p.target.Stage2.Package, library)
}

// pair checks two libraries that were made for each other. Stage 2 opens stage
// 1 by its place beside the package, unless variable names another.
func (p *prober) pair(name, stage2, stage1, variable string) []report.Check {
	in := check(Wiring, name+" in use", p.Root.IsFile(stage1) && p.inGeneration(stage1), stage1, p.Root.Real(stage1))
	if v := run.Getenv(p.Env, variable); v != "" {
		in = check(Wiring, in.Name, false, stage1, v+", named by "+variable)
		in.Hint = "unset " + variable + ": it overrides the installation"
	} else if in.Status != report.Pass {
		in.Hint = "invar build installs both stages together"
	}
	return []report.Check{in, p.lookedUp(name, stage2, stage1), p.contractOf(name, stage2, stage1)}
}

// inGeneration reports whether a path through current ends in the receipt's generation.
func (p *prober) inGeneration(path string) bool {
	return strings.HasPrefix(p.Root.Real(path), p.Root.Real(p.receipt.Dir())+"/")
}

// lookedUp wants every function that stage 2 asks for by name, or links to,
// exported by stage 1. Names to look up stand in its constants.
func (p *prober) lookedUp(name, stage2, stage1 string) report.Check {
	name = "functions of " + name
	want := "exported, each that stage 2 looks up"
	f, err := p.readELF(stage1)
	if err != nil {
		return check(Wiring, name, false, want, err.Error())
	}
	user, err := p.readELF(stage2)
	if err != nil {
		return check(Wiring, name, false, want, err.Error())
	}
	consts, err := p.constants(stage2)
	if err != nil {
		return check(Wiring, name, false, want, err.Error())
	}
	prefix := strings.TrimPrefix(stem(filepath.Base(stage1)), "lib") + "_"
	names := functions(prefix, consts, user)
	if len(names) == 0 {
		c := skipped(Wiring, name, "no name "+prefix+"... in "+p.within(p.Root.Real(stage2))+": the check could not fail")
		c.Status = report.Unclear
		return c
	}
	missing := slices.DeleteFunc(slices.Clone(names), f.Exported)
	c := check(Wiring, name, len(missing) == 0, want, firstNonEmpty(prefixed("without ", missing), count(len(names), "function")))
	c.Hint = hintUnless(c, "the stages are of two builds: invar build installs both together")
	return c
}

// functions lists the names that begin with prefix, from constants and from
// undefined symbols.
func functions(prefix string, consts []byte, user *elffile.File) []string {
	var out []string
	for _, m := range regexp.MustCompile(regexp.QuoteMeta(prefix)+`[a-z0-9_]+\x00`).FindAll(consts, -1) {
		out = add(out, string(m[:len(m)-1]))
	}
	for _, s := range user.Imports {
		if strings.HasPrefix(s.Name, prefix) {
			out = add(out, s.Name)
		}
	}
	slices.Sort(out)
	return out
}

// constants is the read-only data of a library.
func (p *prober) constants(path string) ([]byte, error) {
	host, err := p.Root.Host(path)
	if err != nil {
		return nil, err
	}
	return elffile.Constants(host)
}

var contractRE = regexp.MustCompile(`invar-[a-z]+-[a-z0-9]+/[0-9]+`)

// contractOf compares the contract that stage 1 keeps with the one that stage 2
// wants; both have it among their constants.
func (p *prober) contractOf(name, stage2, stage1 string) report.Check {
	name = "contract of " + name
	var found [2][]string
	for i, lib := range []string{stage1, stage2} {
		b, err := p.constants(lib)
		if err != nil {
			return check(Wiring, name, false, "a contract in both stages", err.Error())
		}
		for _, m := range contractRE.FindAll(b, -1) {
			found[i] = add(found[i], string(m))
		}
		slices.Sort(found[i])
	}
	got := fmt.Sprintf("%s in stage 1, %s in stage 2", firstNonEmpty(strings.Join(found[0], ", "), "none"), firstNonEmpty(strings.Join(found[1], ", "), "none"))
	// Stage 2 may name further contracts, such as that of the GPU part.
	ok := len(found[0]) > 0 && !slices.ContainsFunc(found[0], func(c string) bool { return !slices.Contains(found[1], c) })
	want := "the same contract in both stages"
	if c := p.receipt.Contract; c != "" && stage1 == p.stage1() {
		want, ok = c+" of the receipt in both stages", ok && slices.Equal(found[0], []string{c})
	}
	c := check(Wiring, name, ok, want, got)
	c.Hint = hintUnless(c, "the stages are of two builds: invar build installs both together")
	return c
}

// versionsOfFiles compares the wheel's metadata with the artifacts that the
// receipt names.
func (p *prober) versionsOfFiles() report.Check {
	r := p.receipt
	found := p.Root.Glob(filepath.Join(r.Site(), p.target.Stage2.Package+"-*.dist-info"))
	version := ""
	if len(found) == 1 {
		version = strings.TrimSuffix(strings.TrimPrefix(path.Base(found[0]), p.target.Stage2.Package+"-"), ".dist-info")
	}
	c := check(Wiring, "versions", version != "" && strings.Contains(r.Wheel.Name, "-"+version+"-"), "that of "+r.Wheel.Name, firstNonEmpty(version, "no metadata"))
	c.Hint = hintUnless(c, "invar build installs both stages together")
	return c
}
