package runpkg

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/invar-ops/invar/internal/report"
)

// Extract unpacks the package into dir, which must not exist or be empty, and
// checks everything that Verify checks in the same pass. After an error
// nothing of it is left in dir. Files get the modes of the archive, the
// present owner and the present time: a module that Python has compiled must
// not look unchanged because its package has no times.
func (p *Package) Extract(ctx context.Context, dir string, opts Options) (Report, error) {
	made, err := prepare(dir)
	if err != nil {
		return Report{}, err
	}
	r, err := p.extract(ctx, dir, opts)
	if err != nil {
		if cleanErr := clear(dir, made); cleanErr != nil {
			err = fmt.Errorf("%w (and %s could not be emptied again: %w)", err, dir, cleanErr)
		}
		return r, err
	}
	return r, nil
}

func prepare(dir string) (made bool, err error) {
	list, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return false, report.Problemf(report.Failed, "extract: %w", err)
		}
		return true, nil
	case err != nil:
		return false, report.Problemf(report.Failed, "extract: %w", err)
	case len(list) > 0:
		return false, report.Problemf(report.Failed, "%s is not empty", dir).
			WithWant("a new or empty folder", fmt.Sprintf("%d entries", len(list))).WithHint("choose another folder")
	}
	return false, nil
}

// clear removes what was extracted, and dir itself when Extract made it.
func clear(dir string, made bool) error {
	if made {
		return os.RemoveAll(dir)
	}
	list, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range list {
		if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// An extraction writes through os.Root, so that even a mistake in the checks
// of names and links could not reach anything outside.
type extraction struct {
	root *os.Root
	file *os.File
	dirs []member
}

func (p *Package) extract(ctx context.Context, dir string, opts Options) (Report, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return Report{}, report.Problemf(report.Failed, "extract: %w", err)
	}
	defer func() { _ = root.Close() }()
	x := &extraction{root: root}
	r, err := p.walk(ctx, opts, sink{begin: x.begin, end: x.end})
	if x.file != nil {
		_ = x.file.Close()
	}
	if err != nil {
		return r, err
	}
	return r, x.dirModes()
}

func (x *extraction) begin(m member) (io.Writer, error) {
	if err := x.place(m); err != nil {
		return nil, report.Problemf(report.Failed, "extract %s: %w", m.Path, err)
	}
	if x.file == nil {
		return nil, nil
	}
	return writeErrors{x.file}, nil
}

func (x *extraction) place(m member) error {
	if dir := filepath.Dir(m.Path); dir != "." {
		if err := x.root.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	if m.Type == TypeDir {
		x.dirs = append(x.dirs, m)
		return x.root.MkdirAll(m.Path, 0o755)
	}
	// Only a later payload may name a path again; layout has seen to that.
	if err := x.root.Remove(m.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	switch {
	case m.Type == TypeLink:
		return x.root.Symlink(m.Link, m.Path)
	case m.hardlink != "":
		return x.root.Link(m.hardlink, m.Path)
	}
	f, err := x.root.OpenFile(m.Path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	x.file = f
	return err
}

func (x *extraction) end(m member) error {
	if x.file == nil {
		return nil
	}
	err := errors.Join(x.file.Chmod(m.Mode), x.file.Close())
	x.file = nil
	if err != nil {
		return report.Problemf(report.Failed, "extract %s: %w", m.Path, err)
	}
	return nil
}

// dirModes comes last: a folder may be read-only, and was not while it filled.
func (x *extraction) dirModes() error {
	for _, v := range slices.Backward(x.dirs) {
		if err := x.root.Chmod(v.Path, v.Mode); err != nil {
			return report.Problemf(report.Failed, "extract: %w", err)
		}
	}
	return nil
}

// writeErrors tells an error of the disk from one of the archive.
type writeErrors struct{ w io.Writer }

func (e writeErrors) Write(p []byte) (int, error) {
	n, err := e.w.Write(p)
	if err != nil {
		return n, report.Problemf(report.Failed, "extract: %w", err).
			WithHint("is there enough space, and may the folder be written?")
	}
	return n, nil
}
