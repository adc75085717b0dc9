package store

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/invar-ops/invar/internal/report"
)

// WriteFile replaces the file at path as a whole: a reader, and whoever looks
// after a power cut, sees the old content or the new one.
func WriteFile(path string, b []byte, mode fs.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".tmp*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // gone already when it was renamed
	defer f.Close()
	if _, err := f.Write(b); err != nil {
		return err
	}
	if err := f.Chmod(mode); err != nil { // whatever the umask
		return err
	}
	return Commit(f, path)
}

// Commit syncs and closes f, gives it the name path and syncs the folder.
func Commit(f *os.File, path string) error {
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(path))
}

// SyncDir makes the names in dir last through a power cut.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// Explain turns the errors that a person can do something about into Problems:
// a place that cannot be written (exit 3), a full disk (exit 1). Others pass.
func Explain(err error, place string) error {
	_, known := errors.AsType[*report.Problem](err)
	full := errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT)
	switch {
	case err == nil || known:
		return err
	case errors.Is(err, unix.EROFS), errors.Is(err, fs.ErrPermission), errors.Is(err, unix.ENOTDIR), !full && noFolder(err):
		return report.Problemf(report.Unmet, "%s cannot be written: %w", place, err).
			WithWant("a folder that can be written", reason(err)).
			WithHint("choose another place with --prefix DIR or INVAR_HOME, or make this one writable")
	case full:
		return report.Problemf(report.Failed, "no space left for %s: %w", place, err).
			WithWant("room for the files of one more generation", reason(err)).
			WithHint("free some space (invar gc removes old generations), or choose another place with --prefix DIR")
	}
	return err
}

// noFolder reports whether a folder cannot be made at all: below /proc the
// answer is ENOENT, a name may be too long, a link may go round in circles.
func noFolder(err error) bool {
	p, ok := errors.AsType[*fs.PathError](err)
	return ok && p.Op == "mkdir"
}

// reason is the innermost text of err: "read-only file system".
func reason(err error) string {
	if errno, ok := errors.AsType[unix.Errno](err); ok {
		return errno.Error()
	}
	return err.Error()
}
