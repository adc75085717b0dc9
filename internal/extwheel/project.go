package extwheel

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/store"
)

// leftOut are folders of a working tree that are no sources. A build folder of
// an earlier build would be taken for a finished one.
var leftOut = []string{"build", "dist", ".git", "__pycache__", ".eggs", "extra-info"}

// Project finds the folder below dir that holds the project of the wheel: the
// one with setup.py or pyproject.toml beside the package of that name.
func Project(dir, pkg string) (string, error) {
	var found []string
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if !d.IsDir() {
			return nil
		}
		rel, _ := filepath.Rel(dir, p)
		if p != dir && (slices.Contains(leftOut, d.Name()) || strings.Count(rel, "/") > 3) {
			return fs.SkipDir
		}
		if buildable(p) && holds(p, pkg) {
			found = append(found, p)
			return fs.SkipDir
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	if len(found) == 1 {
		return found[0], nil
	}
	got := "none"
	if len(found) > 1 {
		got = strings.Join(found, ", ")
	}
	return "", report.Problemf(report.Unmet, "no project of %s in the sources of the wheel", pkg).
		WithWant("one folder with setup.py or pyproject.toml and the package "+pkg, got).
		WithHint("name the folder itself: --extension DIR/torch_ops_extension/%s", pkg)
}

func buildable(dir string) bool {
	return isFile(filepath.Join(dir, "setup.py")) || isFile(filepath.Join(dir, "pyproject.toml"))
}

// holds reports whether the project in dir is that of pkg: by its own name, or by the package in it.
func holds(dir, pkg string) bool {
	return filepath.Base(dir) == pkg || isFile(filepath.Join(dir, pkg, "__init__.py")) || isFile(filepath.Join(dir, "src", pkg, "__init__.py"))
}

func isFile(p string) bool {
	st, err := os.Stat(p)
	return err == nil && st.Mode().IsRegular()
}

// Digest is that of the sources below dir, as CopyTree would take them.
func Digest(ctx context.Context, dir string, skip ...string) (string, error) {
	root, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", err
	}
	skip = append(slices.Clone(leftOut), skip...)
	var b strings.Builder
	err = filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && p != root && slices.Contains(skip, d.Name()):
			return fs.SkipDir
		case !d.Type().IsRegular():
			return nil
		}
		sum, _, err := store.Digest(ctx, p)
		fmt.Fprintf(&b, "%s %s\n", strings.TrimPrefix(p, root), sum)
		return err
	})
	return store.DigestBytes([]byte(b.String())), err
}

// CopyTree copies the sources of the tree from to the new folder to. What an
// earlier build left is not copied, and links are followed only inside the tree.
func CopyTree(from, to string, skip ...string) error {
	root, err := filepath.EvalSymlinks(from)
	if err != nil {
		return err
	}
	skip = append(slices.Clone(leftOut), skip...)
	return filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		dst := filepath.Join(to, rel)
		switch {
		case d.IsDir() && p != root && slices.Contains(skip, d.Name()):
			return fs.SkipDir
		case d.IsDir():
			return os.MkdirAll(dst, 0o755)
		case d.Type()&fs.ModeSymlink != 0:
			link, err := os.Readlink(p)
			if err != nil {
				return err
			}
			return os.Symlink(link, dst)
		case !d.Type().IsRegular():
			return nil
		}
		b, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		st, err := d.Info()
		if err != nil {
			return err
		}
		return os.WriteFile(dst, b, st.Mode().Perm()|0o200)
	})
}
