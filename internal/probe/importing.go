package probe

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/invar-ops/invar/internal/install"
	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/run"
)

// factsRequest asks for levels 2 to 5.
type factsRequest struct {
	Do        string           `json:"do"`
	Module    string           `json:"module"`
	Namespace string           `json:"namespace"`
	Operators []wantedOperator `json:"operators"`
	Mapped    []string         `json:"mapped"`         // how names of interesting libraries begin
	CUDA      string           `json:"cuda,omitempty"` // library with GPU code
	NPU       []string         `json:"npu,omitempty"`  // libraries to open, on Ascend
}

type wantedOperator struct {
	Name   string   `json:"name"`
	Schema string   `json:"schema"`
	Keys   []string `json:"keys"`
}

// importing is level 2: a fresh process imports the package, and what it gets
// is the installed copy. The same process answers for levels 3 to 5.
func (p *prober) importing(ctx context.Context) ([]report.Check, error) {
	var err error
	if p.session, err = newSession(p.receipt.Python.Exe, p.Env, p.Runner); err != nil {
		return nil, err
	}
	lacks, err := p.lacks(ctx, Numbers)
	if err != nil {
		return nil, err
	}
	if p.Level >= Numbers && lacks == "" {
		if p.measuring, err = p.start(ctx); err != nil {
			return nil, err
		}
	}
	req := factsRequest{Do: "facts", Module: install.Package, Namespace: install.Package, Mapped: []string{stem(p.target.Stage1.Library)}}
	if p.onNPU() {
		req.NPU = []string{p.vendorLibrary()}
	}
	if c := p.target.CUDA; c != nil {
		req.CUDA = p.gpuLibrary()
		req.Mapped = append(req.Mapped, stem(c.Library), "lib_ops")
	}
	for _, o := range slices.Concat(p.target.Operators, p.target.Overloads) {
		req.Operators = append(req.Operators, wantedOperator{o.Name, o.Schema, o.Keys})
	}
	var f facts
	err = p.session.ask(ctx, req, &f, importLimit, nil)
	if d, ok := errors.AsType[*died](err); ok {
		return []report.Check{deadCheck(Import, "import", d)}, nil
	}
	if err != nil {
		return nil, err
	}
	p.facts = &f
	p.warned(f.Import)
	if !f.Import.OK {
		if p.onNPU() {
			p.fallback()
		}
		return []report.Check{p.notImported(f)}, nil
	}
	p.quickCheck()
	return []report.Check{
		check(Import, "import", true, "import "+install.Package+" in a fresh process",
			fmt.Sprintf("%s with torch %s in %.1f s", f.Import.Version, f.Torch.Version, f.Import.Seconds)),
		p.sameCopy(f.Import),
	}, nil
}

func (p *prober) notImported(f facts) report.Check {
	c := check(Import, "import", false, "import "+install.Package, strings.Join(f.Import.Error, "; caused by "))
	c.Hint = "invar probe --json has the whole traceback"
	c.Reason = strings.TrimSpace(strings.Join(f.Import.Error, "; caused by "))
	p.extra = append(p.extra, Observation{"traceback", f.Import.Traceback})
	return c
}

// sameCopy compares what Python imported with what the receipt installed. A
// copy that stands earlier on sys.path would win without a word.
func (p *prober) sameCopy(i importFacts) report.Check {
	want := filepath.Join(p.receipt.Site(), install.Package, "__init__.py")
	got := i.File
	if got == "" {
		got = "a namespace package in " + strings.Join(i.Path, ", ")
	}
	c := check(Import, "installed copy", sameFile(want, i.File), want, got)
	if c.Status == report.Fail {
		c.Hint = fmt.Sprintf("something else comes first: %s; remove it, or build with --replace", p.whence(i.File))
	}
	return c
}

// whence says by which door another copy came in.
func (p *prober) whence(file string) string {
	dir := filepath.Dir(filepath.Dir(file))
	for _, d := range filepath.SplitList(run.Getenv(p.Env, "PYTHONPATH")) {
		if d != "" && sameFile(d, dir) {
			return dir + " (PYTHONPATH)"
		}
	}
	for _, d := range p.receipt.Python.Paths {
		if sameFile(d, dir) {
			return dir + " (site-packages, which comes before every .pth entry)"
		}
	}
	return dir + " on sys.path"
}

// warned keeps warnings of the import: they are shown, and judged by nobody.
func (p *prober) warned(i importFacts) {
	for _, w := range i.Warnings {
		p.extra = append(p.extra, Observation{"warning", fmt.Sprintf("%s: %s (%s)", w.Category, w.Text, w.Place)})
	}
}

// quickCheck is what the documentation of vllm-ascend tells people to run after
// a build: one import. It is reported with what it does not show.
func (p *prober) quickCheck() {
	text := "python -c 'import " + install.Package + "' works; it shows that the wheel registered its operators, not that they run or are invariant"
	cwd, err := os.Getwd()
	if err == nil {
		for _, name := range []string{install.Package, install.Package + ".py"} {
			if path := filepath.Join(cwd, name); exists(path) && !sameFile(path, filepath.Join(p.receipt.Site(), name)) {
				text = fmt.Sprintf("python -c 'import %s' started here would take %s instead: start Python in another folder, or with -P", install.Package, path)
			}
		}
	}
	p.extra = append(p.extra, Observation{"quick check", text})
}

func sameFile(a, b string) bool {
	if a == "" || b == "" {
		return false
	}
	sa, aerr := os.Stat(a)
	sb, berr := os.Stat(b)
	return aerr == nil && berr == nil && os.SameFile(sa, sb)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// stem is a library's name up to its first dot: versions and suffixes vary.
func stem(library string) string {
	s, _, _ := strings.Cut(library, ".")
	return s
}
