// Package testkit makes what tests of several packages need: Python
// environments with a real torch. Only tests import it.
package testkit

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/invar-ops/invar/internal/python"
)

// The environments that .ci/setup makes: the newest torch, and the oldest that
// the stable ABI allows.
const (
	Latest = "torch-2.15"
	Floor  = "torch-2.10"
)

// Cache is where .ci/setup keeps what is heavy.
func Cache() string {
	if dir := os.Getenv("INVAR_CI_CACHE"); dir != "" {
		return dir
	}
	return filepath.Join(os.Getenv("HOME"), ".cache", "invar-ci")
}

// Shared is one of the shared environments, or an error that says how to make it.
func Shared(name string) (python.Python, error) {
	dir := filepath.Join(Cache(), name)
	py, ok := python.Inspect(filepath.Join(dir, "bin", "python"))
	if _, err := os.Stat(filepath.Join(dir, ".ready")); err != nil || !ok || !py.HasTorch() {
		return py, fmt.Errorf("needs torch: no environment %s in %s; .ci/setup makes it", name, Cache())
	}
	return py, nil
}

// Need is Shared for a test: without it the test is skipped, and fails in CI.
func Need(t testing.TB, name string) python.Python {
	t.Helper()
	py, err := Shared(name)
	switch {
	case err != nil && os.Getenv("INVAR_CI") == "1":
		t.Fatal(err)
	case err != nil:
		t.Skip(err)
	}
	return py
}

// Private makes an environment at dir that holds links to everything in
// shared, so that hooks of tests do not meet.
func Private(shared python.Python, dir string) (python.Python, error) {
	site := filepath.Join(dir, "lib", "python"+shared.Minor(), "site-packages")
	bin := filepath.Join(dir, "bin")
	for _, d := range []string{site, bin} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return python.Python{}, err
		}
	}
	cfg, err := os.ReadFile(filepath.Join(shared.Prefix, "pyvenv.cfg"))
	if err != nil {
		return python.Python{}, err
	}
	if err := os.WriteFile(filepath.Join(dir, "pyvenv.cfg"), cfg, 0o644); err != nil {
		return python.Python{}, err
	}
	base, err := filepath.EvalSymlinks(shared.Exe)
	if err != nil {
		return python.Python{}, err
	}
	for _, name := range []string{"python", "python3"} {
		if err := os.Symlink(base, filepath.Join(bin, name)); err != nil {
			return python.Python{}, err
		}
	}
	entries, err := os.ReadDir(shared.Purelib)
	if err != nil {
		return python.Python{}, err
	}
	for _, e := range entries {
		if e.Name() == "invar.pth" || e.Name() == "__pycache__" {
			continue
		}
		if err := os.Symlink(filepath.Join(shared.Purelib, e.Name()), filepath.Join(site, e.Name())); err != nil {
			return python.Python{}, err
		}
	}
	py, ok := python.Inspect(filepath.Join(bin, "python"))
	if !ok || !py.HasTorch() {
		return py, fmt.Errorf("%s does not look like an environment with torch", dir)
	}
	return py, nil
}
