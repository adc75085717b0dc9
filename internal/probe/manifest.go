package probe

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/runpkg"
	"github.com/invar-ops/invar/internal/store"
)

// manifest compares what the run package says that it holds with what the
// loaded library says. The package is in the store unless gc removed it.
func (p *prober) manifest(ctx context.Context) (report.Check, error) {
	m, c, err := p.storedManifest(ctx)
	if m == nil {
		return c, err
	}
	return p.compareManifest(c.Name, c.Want, *m), nil
}

// storedManifest reads the manifest of the run package; without one the check
// says why.
func (p *prober) storedManifest(ctx context.Context) (*runpkg.Manifest, report.Check, error) {
	const name, want = "manifest of the run package", "operators and levels of the loaded library"
	r := p.receipt.RunPackage
	path := store.At(p.receipt.Prefix).Path(r.SHA256)
	host, err := p.Root.Host(path)
	if err != nil {
		return nil, report.Check{}, err
	}
	if st, err := p.Root.Stat(path); err == nil && !st.Mode().IsRegular() {
		return nil, check(Kernels, name, false, "a file", path+" is none"), nil
	}
	sum, _, err := store.Digest(ctx, host)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, skipped(Kernels, name, r.Name+" is not in the store any more"), nil
	case ctx.Err() != nil:
		return nil, report.Check{}, ctx.Err()
	case err != nil:
		return nil, check(Kernels, name, false, want, err.Error()), nil
	case sum != r.SHA256:
		c := check(Kernels, name, false, "sha256 "+r.SHA256, "sha256 "+sum+" of "+path)
		c.Hint = "the store is damaged: invar build --force makes the package again"
		return nil, c, nil
	}
	pkg, err := runpkg.Open(host)
	if err != nil {
		return nil, check(Kernels, name, false, want, err.Error()), nil
	}
	defer func() { _ = pkg.Close() }()
	if pkg.Manifest == nil {
		return nil, skipped(Kernels, name, r.Name+" has none: it is not of invar's own kind"), nil
	}
	return pkg.Manifest, report.Check{Name: name, Want: want}, nil
}

func (p *prober) compareManifest(name, want string, m runpkg.Manifest) report.Check {
	s := p.facts.Package
	var wrong []string
	var have []string
	for _, l := range s.Levels {
		have = append(have, l.Name)
	}
	if !slices.Equal(m.ISALevels, have) {
		wrong = append(wrong, fmt.Sprintf("levels %s in the manifest, %s in the library", strings.Join(m.ISALevels, ", "), strings.Join(have, ", ")))
	}
	for _, o := range m.Operators {
		if len(s.Operators) > 0 && !slices.Contains(s.Operators, o) {
			wrong = append(wrong, "the library has no "+o)
		}
	}
	if m.Contract != "" && m.Contract != s.Contract {
		wrong = append(wrong, fmt.Sprintf("contract %s in the manifest, %s in the library", m.Contract, s.Contract))
	}
	c := check(Kernels, name, len(wrong) == 0, want, firstNonEmpty(strings.Join(wrong, "; "), fmt.Sprintf("%s, %s, %s", count(len(m.Operators), "operator"), strings.Join(m.ISALevels, ", "), m.Contract)))
	c.Hint = hintUnless(c, "the package was not made from these sources: invar build --force")
	return c
}
