package cuda

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"regexp"
)

// unversioned is the library that linkers look for under -lcudart.
var sonameRE = regexp.MustCompile(`^(lib[a-zA-Z0-9_]+\.so)\.[0-9.]+$`)

// NeedsShim says what keeps other tools, such as torch's CUDAExtension, from
// using this toolkit as CUDA_HOME: compiler wheels have lib and no lib64, and
// libcudart.so only under its soname. Empty when nothing does.
func (t Toolkit) NeedsShim() string {
	if t.NVCC() == "" || t.Parts["libcudart_static.a"] == "" {
		return ""
	}
	if !isDir(filepath.Join(t.Home, "lib64")) {
		return "it has lib and no lib64"
	}
	if _, err := os.Stat(filepath.Join(t.Home, "lib64", "libcudart.so")); err != nil {
		return "it has no libcudart.so without a version"
	}
	return ""
}

// ShimDir is the folder below prefix that stands for the toolkit at home.
func ShimDir(prefix, home string) string {
	sum := sha256.Sum256([]byte(home))
	return filepath.Join(prefix, "cuda", "shim-"+hex.EncodeToString(sum[:6]))
}

// MakeShim makes dir a toolkit of the usual layout, of links into t: lib64 with
// every library, also under the name without a version. Nothing is written
// into t itself.
func (t Toolkit) MakeShim(dir string) error {
	tmp, err := os.MkdirTemp(filepath.Dir(dir), ".shim-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	entries, err := os.ReadDir(t.Home)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() == "lib64" {
			continue
		}
		if err := os.Symlink(filepath.Join(t.Home, e.Name()), filepath.Join(tmp, e.Name())); err != nil {
			return err
		}
	}
	if err := linkLibraries(t.Lib(), filepath.Join(tmp, "lib64")); err != nil {
		return err
	}
	if err := os.Chmod(tmp, 0o755); err != nil {
		return err
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	return os.Rename(tmp, dir)
}

func linkLibraries(from, to string) error {
	if err := os.Mkdir(to, 0o755); err != nil {
		return err
	}
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, e := range entries {
		path := filepath.Join(from, e.Name())
		if err := os.Symlink(path, filepath.Join(to, e.Name())); err != nil && !os.IsExist(err) {
			return err
		}
		if m := sonameRE.FindStringSubmatch(e.Name()); m != nil {
			if err := os.Symlink(path, filepath.Join(to, m[1])); err != nil && !os.IsExist(err) {
				return err
			}
		}
	}
	return nil
}
