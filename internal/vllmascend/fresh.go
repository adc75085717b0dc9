package vllmascend

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"

	"github.com/invar-ops/invar/internal/run"
)

// installers are what build_aclnn.sh leaves in the folder that it keeps. It
// wants exactly one there after the build, so that one of another name stops it.
const installers = "csrc/build/cann-ops-transformer*.run"

// caches are where cmake remembers the environment of an earlier build.
var caches = []string{"csrc/build/CMakeCache.txt", "build/temp.*/CMakeCache.txt"}

// fresh takes out of the tree what an older build left and this one would trip
// over: installers, and folders that cmake configured in another environment.
// Both are made by the tree's own scripts and ignored by its git. It says what
// is gone.
func (i Install) fresh() ([]string, error) {
	var gone []string
	old, err := filepath.Glob(filepath.Join(i.Tree.Dir, installers))
	if err != nil {
		return nil, err
	}
	for _, f := range old {
		if err := os.Remove(f); err != nil {
			return gone, err
		}
		gone = append(gone, f+": the installer of an older build")
	}
	for _, pattern := range caches {
		found, err := filepath.Glob(filepath.Join(i.Tree.Dir, pattern))
		if err != nil {
			return gone, err
		}
		for _, f := range found {
			why := i.foreign(f)
			if why == "" {
				continue
			}
			if err := os.RemoveAll(filepath.Dir(f)); err != nil {
				return gone, err
			}
			gone = append(gone, filepath.Dir(f)+": configured for "+why)
		}
	}
	return gone, nil
}

// foreign says for what else than this build the cache was made.
func (i Install) foreign(cache string) string {
	f, err := os.Open(cache)
	if err != nil {
		return ""
	}
	defer f.Close()
	want := map[string]string{
		"PYTHON_EXECUTABLE": i.Python.Exe, "Python3_EXECUTABLE": i.Python.Exe, "Python_EXECUTABLE": i.Python.Exe,
		"ASCEND_HOME_PATH": run.Getenv(i.Env, "ASCEND_HOME_PATH"), "ASCEND_CANN_PACKAGE_PATH": run.Getenv(i.Env, "ASCEND_HOME_PATH"),
	}
	if npu, ok := i.Python.Lookup("torch-npu"); ok {
		want["TORCH_NPU_PATH"] = filepath.Join(npu.Dir, "torch_npu")
	}
	for sc := bufio.NewScanner(f); sc.Scan(); {
		key, value, ok := strings.Cut(sc.Text(), "=")
		name, _, _ := strings.Cut(key, ":")
		switch {
		case !ok || strings.HasPrefix(key, "//") || strings.HasPrefix(key, "#") || value == "":
		case name == "CMAKE_CACHEFILE_DIR" && !onePlace(value, filepath.Dir(cache)):
			return "another folder: " + value
		case strings.Contains(value, "pip-build-env-"):
			return "a build environment of pip that is gone: " + value
		case want[name] != "" && !onePlace(value, want[name]):
			return "another environment: " + name + "=" + value
		}
	}
	return ""
}

// onePlace reports whether two paths are one place.
func onePlace(a, b string) bool {
	if filepath.Clean(a) == filepath.Clean(b) {
		return true
	}
	sa, errA := os.Stat(a)
	sb, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(sa, sb)
}

// ownGit makes a global configuration of git for this install alone: that of
// the user is read through it and never written. build_aclnn.sh adds the tree
// to safe.directory with every run.
func (i Install) ownGit(dir string) (string, error) {
	file := filepath.Join(dir, "gitconfig")
	var b strings.Builder
	for _, users := range []string{run.Getenv(i.Env, "GIT_CONFIG_GLOBAL"), filepath.Join(run.Getenv(i.Env, "HOME"), ".gitconfig")} {
		if filepath.IsAbs(users) {
			b.WriteString("[include]\n\tpath = " + quoteGit(users) + "\n")
			break
		}
	}
	return file, os.WriteFile(file, []byte(b.String()), 0o600)
}

func quoteGit(path string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(path) + `"`
}
