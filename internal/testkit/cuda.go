package testkit

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
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

// LinkTree makes dir a copy of the tree from, of links, so that a test can take
// parts away. Paths in without, below from, are left out. The folders at the top
// are the copy's own, so that files in them can be replaced; deeper ones are
// links as a whole unless something of them is left out.
func LinkTree(from, dir string, without ...string) error {
	return linkFolder(from, dir, "", without)
}

func linkFolder(from, dir, rel string, without []string) error {
	if err := os.MkdirAll(filepath.Join(dir, rel), 0o755); err != nil {
		return err
	}
	entries, err := os.ReadDir(filepath.Join(from, rel))
	if err != nil {
		return err
	}
	for _, e := range entries {
		path := filepath.Join(rel, e.Name())
		if slices.Contains(without, path) {
			continue
		}
		inside := slices.ContainsFunc(without, func(w string) bool { return strings.HasPrefix(w, path+"/") })
		if e.IsDir() && (rel == "" || inside) {
			err = linkFolder(from, dir, path, without)
		} else {
			err = os.Symlink(filepath.Join(from, path), filepath.Join(dir, path))
		}
		if err != nil {
			return err
		}
	}
	return nil
}
