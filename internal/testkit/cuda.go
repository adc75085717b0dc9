package testkit

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// CUDA is the environment of .ci/setup that holds compiler wheels, of the minor
// version that torch in Latest was built with.
const CUDA = "cuda-13.2"

// Toolkit is the home of the shared CUDA toolkit, or an error that says how to make it.
func Toolkit() (string, error) {
	hits, err := filepath.Glob(filepath.Join(Cache(), CUDA, "lib", "python3*", "site-packages", "nvidia", "cu13"))
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(filepath.Join(Cache(), CUDA, ".ready")); err != nil || len(hits) != 1 {
		return "", fmt.Errorf("needs a CUDA toolkit: no environment %s in %s; .ci/setup makes it", CUDA, Cache())
	}
	return hits[0], nil
}

// NeedToolkit is Toolkit for a test: without it the test is skipped, and fails in CI.
func NeedToolkit(t testing.TB) string {
	t.Helper()
	home, err := Toolkit()
	switch {
	case err != nil && os.Getenv("INVAR_CI") == "1":
		t.Fatal(err)
	case err != nil:
		t.Skip(err)
	}
	return home
}

// LinkTree makes dir a copy of the folders of from with links in the place of
// its files, so that a test can take parts away. Paths in without, below from,
// are left out.
func LinkTree(from, dir string, without ...string) error {
	leave := map[string]bool{}
	for _, w := range without {
		leave[filepath.Clean(w)] = true
	}
	return filepath.WalkDir(from, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		switch {
		case err != nil:
			return err
		case leave[rel] && d.IsDir():
			return filepath.SkipDir
		case leave[rel]:
			return nil
		case d.IsDir():
			return os.MkdirAll(filepath.Join(dir, rel), 0o755)
		}
		return os.Symlink(path, filepath.Join(dir, rel))
	})
}
