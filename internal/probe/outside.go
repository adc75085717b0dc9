package probe

import (
	"context"
	"fmt"
	"strings"

	"github.com/invar-ops/invar/internal/elffile"
	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/version"
)

// An installation in another root is looked at from outside: nothing of that
// root is started, so level 1 and the static parts of levels 4 and 5 are all
// that can be asked.

// needsOutside is needs for a probe from outside.
var needsOutside = map[int][]int{Wiring: {Files}, Kernels: {Files}}

const fromOutside = "not run from outside: run invar probe inside it"

func (p *prober) outside() bool { return !p.Root.Live() }

// arch is the architecture that the installation has to be for.
func (p *prober) arch() string {
	if p.machine != "" {
		return p.machine
	}
	return arch()
}

// cannotOutside says why level is not asked from outside.
func cannotOutside(level int, done []Level) string {
	switch level {
	case Files, Wiring, Kernels:
		return blockedBy(needsOutside, level, done)
	}
	return fromOutside
}

// programs are what tells the architecture of a root, after its Python.
var programs = []string{"/bin/sh", "/usr/bin/env", "/sbin/ldconfig", "/usr/local/bin/invar"}

// archOfRoot is the architecture of the programs in the root, this machine's
// when there is none.
func (p *prober) archOfRoot() string {
	for _, path := range append([]string{p.receipt.Python.Exe}, programs...) {
		if f, err := p.readELF(path); err == nil {
			return f.Arch
		}
	}
	return arch()
}

// filesOutside is level 1, and what level 2 would meet first: an interpreter
// that is there, and a torch that stage 2 was made for.
func (p *prober) filesOutside(ctx context.Context) ([]report.Check, error) {
	checks, err := p.files(ctx)
	return append(checks, p.interpreter(), p.torchOfRoot()), err
}

func (p *prober) interpreter() report.Check {
	exe := p.receipt.Python.Exe
	want := exe + ", a program for " + p.arch()
	f, err := p.readELF(p.Root.Real(exe)) // $ORIGIN of a program is where its links lead
	switch {
	case err == nil:
		var lost []string
		for _, l := range elffile.NewLoader(p.Root.Dir(), "").Tree(f) {
			if l.Path == "" {
				lost = append(lost, l.Name)
			}
		}
		c := check(Files, "interpreter", len(lost) == 0, want, firstNonEmpty(prefixed("without ", lost), p.Root.Real(exe)))
		c.Hint = hintUnless(c, "the root lacks libraries of its Python: copy them too, or install the Python there")
		return c
	case p.Root.Broken(exe):
		c := check(Files, "interpreter", false, want, "a link to "+p.Root.Real(exe)+", which is not there")
		c.Hint = "an environment alone is not enough: its base Python must be in the same root"
		return c
	case !p.Root.Exists(exe):
		c := check(Files, "interpreter", false, want, "no such file")
		c.Hint = "the Python that the operators were installed for is not in this root"
		return c
	}
	return check(Files, "interpreter", false, want, err.Error())
}

// torchOfRoot wants a torch in the site directories that the target allows.
func (p *prober) torchOfRoot() report.Check {
	want := firstNonEmpty(p.target.Python.Torch, "any version") + ", as when it was installed: " + firstNonEmpty(p.receipt.Python.Torch, "none")
	got := ""
	for _, dir := range p.receipt.Python.Paths {
		for _, d := range p.Root.Glob(dir + "/torch-*.dist-info") {
			if got == "" && p.Root.IsDir(dir+"/torch") {
				got = strings.TrimSuffix(d[strings.LastIndex(d, "/torch-")+len("/torch-"):], ".dist-info")
			}
		}
	}
	within := p.target.Python.Torch
	c := check(Files, "torch", got != "" && (within == "" || version.Within(version.PEP440, within, got)), want, firstNonEmpty(got, "no torch in "+strings.Join(p.receipt.Python.Paths, ", ")))
	c.Hint = hintUnless(c, fmt.Sprintf("install torch %s into this root", p.receipt.Python.Torch))
	return c
}

// there reports whether path is in the root, if only as a link.
func (p *prober) there(path string) bool {
	_, err := p.Root.Lstat(path)
	return err == nil
}

// same reports whether two paths of the root are one file.
func (p *prober) same(a, b string) bool {
	if !p.outside() {
		return sameFile(a, b)
	}
	return a != "" && b != "" && p.Root.Exists(a) && p.Root.Real(a) == p.Root.Real(b)
}

// insideRoot says of hints that name a command of invar where it is to be run.
func insideRoot(checks []report.Check) {
	for i := range checks {
		if strings.Contains(checks[i].Hint, "invar ") {
			checks[i].Hint = "inside this root: " + checks[i].Hint
		}
	}
}
