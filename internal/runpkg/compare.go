package runpkg

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/invar-ops/invar/internal/report"
)

// compareManifest checks that an archive holds what its manifest says, in the
// order in which Write packs it, and nothing else.
func compareManifest(m *Manifest, got []Entry) error {
	for i := range max(len(m.Files), len(got)) {
		switch {
		case i >= len(got):
			return manifestLies(m.Files[i].Path, "in the archive", "missing")
		case i >= len(m.Files):
			return manifestLies(got[i].Path, "nothing", "an entry that the manifest does not name")
		case m.Files[i] != got[i]:
			return manifestLies(m.Files[i].Path, m.Files[i].text(), got[i].Path+" "+got[i].text())
		}
	}
	return nil
}

func manifestLies(path, want, got string) error {
	return report.Problemf(report.CheckFailed, "the archive is not what its manifest says at %s", path).
		WithWant(want, got).WithHint("do not use this package; pack it again from its sources")
}

func (e Entry) text() string {
	switch e.Type {
	case TypeFile:
		return fmt.Sprintf("%s %o, %d bytes, sha256:%s", e.Type, e.Mode, e.Size, e.SHA256)
	case TypeLink:
		return e.Type + " to " + e.Link
	}
	return fmt.Sprintf("%s %o", e.Type, e.Mode)
}

// A Change is one difference between two packages. A or B is empty when only
// the other has it.
type Change struct {
	Path string `json:"path,omitempty"`  // of an entry, empty for a fact of the header
	Fact string `json:"field,omitempty"` // "label", "codec", "mode", "content"
	A    string `json:"a"`
	B    string `json:"b"`
}

// Diff reads both packages and lists what differs: facts of the headers
// first, then entries by path. How the payload was compressed is no
// difference unless the codec is another one.
func Diff(ctx context.Context, a, b *Package, opts Options) ([]Change, error) {
	ra, err := a.walk(ctx, opts, sink{})
	if err != nil {
		return nil, err
	}
	rb, err := b.walk(ctx, opts, sink{})
	if err != nil {
		return nil, err
	}
	changes := diffFacts(a, b)
	left, right := byPath(ra.Entries), byPath(rb.Entries)
	for i, j := 0, 0; i < len(left) || j < len(right); {
		switch {
		case j == len(right) || i < len(left) && left[i].Path < right[j].Path:
			changes = append(changes, Change{Path: left[i].Path, A: left[i].text()})
			i++
		case i == len(left) || right[j].Path < left[i].Path:
			changes = append(changes, Change{Path: right[j].Path, B: right[j].text()})
			j++
		default:
			if left[i] != right[j] {
				changes = append(changes, Change{Path: left[i].Path, A: left[i].text(), B: right[j].text()})
			}
			i, j = i+1, j+1
		}
	}
	return changes, nil
}

func byPath(list []Entry) []Entry {
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b Entry) int { return strings.Compare(a.Path, b.Path) })
	return list
}

func diffFacts(a, b *Package) (changes []Change) {
	fa, fb := facts(a), facts(b)
	for i := range fa {
		if fa[i][1] != fb[i][1] {
			changes = append(changes, Change{Fact: fa[i][0], A: fa[i][1], B: fb[i][1]})
		}
	}
	return changes
}

func facts(p *Package) [][2]string {
	m := Manifest{}
	if p.Manifest != nil {
		m = *p.Manifest
	}
	var extra []string
	for k, v := range m.Extra {
		extra = append(extra, k+"="+string(v))
	}
	slices.Sort(extra)
	return [][2]string{
		{"kind", string(p.Kind)},
		{"label", p.Label},
		{"script", strings.TrimSpace(p.Script + " " + p.ScriptArgs)},
		{"codec", string(p.Codec)},
		{"name", m.Name},
		{"version", m.Version},
		{"platform", m.Platform},
		{"contract", m.Contract},
		{"operators", strings.Join(m.Operators, " ")},
		{"isa levels", strings.Join(m.ISALevels, " ")},
		{"compiler", m.Compiler},
		{"source", m.SourceDigest},
		{"extra", strings.Join(extra, " ")},
	}
}
