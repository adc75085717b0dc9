package probe

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/runpkg"
)

// kernelsOutside is level 5 as far as files tell: the package that was
// installed holds what the target builds, and its libraries are the installed
// ones, bit by bit.
func (p *prober) kernelsOutside(ctx context.Context) ([]report.Check, error) {
	if p.onNPU() {
		return p.npuKernels()
	}
	cpu := skipped(Kernels, "level in use", "it depends on the CPU that runs it")
	m, c, err := p.storedManifest(ctx)
	if err != nil {
		return nil, err
	}
	if m == nil {
		return []report.Check{c, cpu}, nil
	}
	want := p.target.Stage1.Levels(p.arch())
	out := []report.Check{
		check(Kernels, "levels", len(want) > 0 && slices.Equal(m.ISALevels, want), strings.Join(want, ", ")+" for "+p.arch(), strings.Join(m.ISALevels, ", ")+" in the package"),
		p.stage1Operators(m.Operators),
		p.librariesOf(m),
		cpu,
	}
	gpu, err := p.gpuOutside(ctx)
	return append(out, gpu...), err
}

// librariesOf compares the libraries of the run package with those of the receipt.
func (p *prober) librariesOf(m *runpkg.Manifest) report.Check {
	const name = "libraries of the run package"
	installed := map[string]string{}
	for _, f := range p.receipt.Files {
		installed[f.Path] = f.SHA256
	}
	var wrong []string
	n := 0
	for _, e := range m.Files {
		if e.SHA256 == "" || !strings.HasPrefix(e.Path, "lib/") {
			continue
		}
		n++
		if got := installed[path.Join("ops", p.receipt.Target, e.Path)]; got != e.SHA256 {
			wrong = append(wrong, fmt.Sprintf("%s: %.12s in the package, %.12s installed", e.Path, e.SHA256, firstNonEmpty(got, "nothing")))
		}
	}
	c := check(Kernels, name, n > 0 && len(wrong) == 0, "each installed with its digest", firstNonEmpty(strings.Join(wrong, "; "), count(n, "file")))
	c.Hint = hintUnless(c, "the package was not what was installed: invar build --force")
	return c
}

// gpuOutside compares the GPU code with what was proved when it was built.
func (p *prober) gpuOutside(ctx context.Context) ([]report.Check, error) {
	if p.target.CUDA == nil {
		return nil, nil
	}
	const name, want = "GPU code", "the code that was proved at build time"
	images, err := p.gpuImages()
	if err != nil {
		return []report.Check{check(Kernels, name, false, want, err.Error())}, nil
	}
	was, reason, err := p.proved(ctx)
	if err != nil {
		return nil, err
	}
	if reason != "" {
		return []report.Check{check(Kernels, name, false, want, reason)}, nil
	}
	return []report.Check{sameCode(was, images), skipped(Kernels, "GPUs of this host", fromOutside)}, nil
}
