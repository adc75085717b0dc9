package runpkg

import (
	"context"
	"fmt"

	"github.com/invar-ops/invar/internal/report"
)

// Verify reads the whole package and unpacks it to nowhere: sizes, every
// digest that the header holds, the checksum of the codec, each name and
// link, and the manifest of our own kind. The Report lists the checks also
// when there is an error, up to the one that failed.
func (p *Package) Verify(ctx context.Context, opts Options) (Report, error) {
	return p.walk(ctx, opts, sink{})
}

// CheckDigests compares the payload with the digests in the header and does
// not unpack it: what a package's own --check does.
func (p *Package) CheckDigests(ctx context.Context, opts Options) ([]report.Check, error) {
	all := []report.Check{{Name: "size", Status: report.Pass, Got: fmt.Sprintf("%d bytes", p.Size)}}
	for i, pl := range p.Payloads {
		s := newStream(ctx, p.src, pl, opts.Progress)
		if err := s.finish(); err != nil {
			s.abandon()
			return all, fmt.Errorf("%s: %w", p.Path, err)
		}
		checks := s.checks(p.what(i))
		all = append(all, checks...)
		if err := firstFailed(checks); err != nil {
			return all, fmt.Errorf("%s: %w", p.Path, err)
		}
	}
	return all, nil
}

// Entries lists what the package holds. For our own kind this is the
// manifest, which Verify compares with the archive; any other package is
// read and checked whole.
func (p *Package) Entries(ctx context.Context, opts Options) ([]Entry, error) {
	if p.Manifest != nil {
		return p.Manifest.Files, nil
	}
	r, err := p.walk(ctx, opts, sink{})
	return r.Entries, err
}
