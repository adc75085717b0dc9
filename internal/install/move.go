package install

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/invar-ops/invar/internal/store"
)

// move renames a file or folder, across file systems too. It never leaves a
// half-moved one under either name: a copy is made beside the new name and
// renamed, then the old one is renamed out of sight and removed.
func move(from, to string) error {
	const gone = ".invar-moved"
	if !exists(from) {
		if exists(to) {
			return os.RemoveAll(from + gone) // done but for the last step
		}
		return &fs.PathError{Op: "move", Path: from, Err: fs.ErrNotExist}
	}
	if exists(to) && !sameTree(from, to) {
		return nil // from is another one that came later: not ours to touch
	}
	if !exists(to) {
		err := os.Rename(from, to)
		if err == nil {
			return errors.Join(store.SyncDir(filepath.Dir(from)), store.SyncDir(filepath.Dir(to)))
		}
		if !errors.Is(err, unix.EXDEV) {
			return store.Explain(err, filepath.Dir(from))
		}
		if err := copyAcross(from, to); err != nil {
			return store.Explain(err, filepath.Dir(to))
		}
	}
	if err := os.Rename(from, from+gone); err != nil {
		return store.Explain(err, filepath.Dir(from))
	}
	return errors.Join(store.SyncDir(filepath.Dir(from)), os.RemoveAll(from+gone))
}

func copyAcross(from, to string) error {
	part := to + ".invar-part"
	if err := os.RemoveAll(part); err != nil {
		return err
	}
	if err := copyTree(from, part); err != nil {
		return errors.Join(err, os.RemoveAll(part))
	}
	if err := os.Rename(part, to); err != nil {
		return err
	}
	return store.SyncDir(filepath.Dir(to))
}

// copyTree copies files, folders and links with their modes and times.
func copyTree(from, to string) error {
	return filepath.WalkDir(from, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, p)
		if err != nil {
			return err
		}
		dst := filepath.Join(to, rel)
		st, err := d.Info()
		if err != nil {
			return err
		}
		switch {
		case d.IsDir():
			return os.MkdirAll(dst, st.Mode().Perm()|0o700)
		case st.Mode()&fs.ModeSymlink != 0:
			link, err := os.Readlink(p)
			if err != nil {
				return err
			}
			return os.Symlink(link, dst)
		}
		return copyFile(p, dst, st)
	})
}

func copyFile(from, to string, st fs.FileInfo) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, st.Mode().Perm())
	if err != nil {
		return err
	}
	defer out.Close()
	if _, err := out.ReadFrom(in); err != nil {
		return err
	}
	if err := errors.Join(out.Chmod(st.Mode().Perm()), out.Sync(), out.Close()); err != nil {
		return err
	}
	return os.Chtimes(to, st.ModTime(), st.ModTime())
}

func exists(p string) bool {
	_, err := os.Lstat(p)
	return err == nil
}

// removeEmpty removes dir and its parents below top while they are empty.
func removeEmpty(dir, top string) {
	for dir != top && len(dir) > len(top) {
		if os.Remove(dir) != nil {
			return
		}
		dir = filepath.Dir(dir)
	}
}
