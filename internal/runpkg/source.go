package runpkg

import (
	"context"
	"io/fs"
	"slices"
	"strings"

	"github.com/invar-ops/invar/internal/report"
)

// recordName is the file in which the shell installer keeps its list.
const recordName = ".invar-installed"

// collect lists the tree in the order in which it is packed. Modes are
// reduced to the one bit that matters, so that umask and checkout do not show.
func collect(ctx context.Context, tree fs.FS) ([]Entry, error) {
	var all []Entry
	seen := newLayout()
	err := fs.WalkDir(tree, ".", func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case p == ".":
			return nil
		}
		e, err := describe(tree, p, d)
		if err != nil {
			return err
		}
		all = append(all, e)
		_, err = seen.add(e, 0)
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := seen.checkLinks(); err != nil {
		return nil, err
	}
	// WalkDir sorts each folder; sorting whole paths makes the order a rule
	// that does not depend on the walk. A parent still comes before its children.
	slices.SortFunc(all, func(a, b Entry) int { return strings.Compare(a.Path, b.Path) })
	return all, nil
}

func describe(tree fs.FS, p string, d fs.DirEntry) (Entry, error) {
	if err := packable(p); err != nil {
		return Entry{}, err
	}
	info, err := d.Info()
	if err != nil {
		return Entry{}, err
	}
	switch info.Mode().Type() {
	case 0:
		mode := fs.FileMode(0o644)
		if info.Mode()&0o100 != 0 {
			mode = 0o755
		}
		return Entry{Path: p, Type: TypeFile, Mode: mode, Size: info.Size()}, nil
	case fs.ModeDir:
		return Entry{Path: p, Type: TypeDir, Mode: 0o755}, nil
	case fs.ModeSymlink:
		link, err := fs.ReadLink(tree, p)
		if err != nil {
			return Entry{}, err
		}
		return Entry{Path: p, Type: TypeLink, Mode: 0o777, Link: link}, nil
	}
	return Entry{}, report.Problemf(report.Failed, "%s cannot be packed", p).
		WithWant("a file, a folder or a symbolic link", info.Mode().Type().String())
}

// packable refuses names that sha256sum -c, read or a line of text would take
// for something else on the machine where the shell unpacks them.
func packable(p string) error {
	bad := strings.IndexFunc(p, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\\' })
	if bad < 0 && p != recordName {
		return nil
	}
	return report.Problemf(report.Failed, "%q cannot be packed", p).
		WithWant("a name without control characters and backslashes, other than "+recordName, p).
		WithHint("rename it, or leave it out of the folder")
}
