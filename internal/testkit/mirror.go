package testkit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/invar-ops/invar/internal/elffile"
	"github.com/invar-ops/invar/internal/python"
)

// Mirror makes root a root file system in which an installation of this machine
// lies at the same paths: the folders dirs, the environment py with its
// interpreter, and the libraries that they need. Of torch and torch_npu, which
// have gigabytes, it holds the names of their libraries.
func Mirror(root string, py python.Python, dirs ...string) error {
	exe, err := filepath.EvalSymlinks(py.Exe)
	if err != nil {
		return err
	}
	files := []string{exe}
	for _, dir := range append(dirs, py.Prefix) {
		if err := os.CopyFS(filepath.Join(root, dir), os.DirFS(dir)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if dir == py.Prefix {
			continue
		}
		err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() && strings.HasSuffix(p, ".so") {
				files = append(files, p)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	for _, f := range files {
		if err := mirrorNeeds(root, f, append(dirs, py.Prefix)); err != nil {
			return err
		}
	}
	if err := mirrorFile(root, exe); err != nil {
		return err
	}
	for _, pattern := range []string{"torch", "torch-*.dist-info", "torch_npu"} {
		if err := mirrorTorch(root, filepath.Join(py.Purelib, pattern)); err != nil {
			return err
		}
	}
	return nil
}

// mirrorNeeds copies the libraries of the system that a file needs.
func mirrorNeeds(root, file string, dirs []string) error {
	f, err := elffile.Read(file)
	if err != nil {
		return fmt.Errorf("mirror: %w", err)
	}
	for _, l := range elffile.NewLoader("", "").Tree(f) {
		own := l.Path == ""
		for _, d := range dirs {
			own = own || strings.HasPrefix(l.Path, d+"/")
		}
		if own {
			continue
		}
		if err := mirrorFile(root, l.Path); err != nil {
			return err
		}
	}
	return nil
}

func mirrorFile(root, path string) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	to := filepath.Join(root, path)
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.WriteFile(to, b, 0o755)
}

// mirrorTorch puts a folder with the names of the libraries in place of a link.
func mirrorTorch(root, pattern string) error {
	hits, err := filepath.Glob(pattern)
	if err != nil {
		return err
	}
	for _, hit := range hits {
		at := filepath.Join(root, hit)
		if err := os.RemoveAll(at); err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Join(at, "lib"), 0o755); err != nil {
			return err
		}
		names, err := filepath.Glob(filepath.Join(hit, "lib", "*.so*"))
		if err != nil {
			return err
		}
		for _, n := range names {
			if err := os.WriteFile(filepath.Join(at, "lib", filepath.Base(n)), nil, 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}
