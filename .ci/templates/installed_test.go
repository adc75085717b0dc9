package templates

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// cache is where .ci/setup keeps what is heavy.
func cache() string {
	if dir := os.Getenv("INVAR_CI_CACHE"); dir != "" {
		return dir
	}
	return filepath.Join(os.Getenv("HOME"), ".cache", "invar-ci")
}

// need is a file that .ci/setup makes: without it the test is skipped, and fails in CI.
func need(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(cache(), name)
	if _, err := os.Stat(path); err != nil {
		skip := t.Skipf
		if os.Getenv("INVAR_CI") == "1" {
			skip = t.Fatalf
		}
		skip("needs %s: run .ci/setup", path)
	}
	return path
}

// installed makes an environment with the shared torch, builds the CPU operators
// into it and returns the variables by which invar finds them.
func installed(t *testing.T) map[string]string {
	t.Helper()
	python := need(t, "torch-2.15/bin/python")
	need(t, "torch-2.15/.ready")
	dir := t.TempDir()
	env := map[string]string{"PATH": os.Getenv("PATH"), "HOME": dir, "INVAR_HOME": filepath.Join(dir, "home"), "INVAR_PYTHON": filepath.Join(dir, "venv")}
	if code, out := execute(t, dir, env, python, "-m", "venv", "--without-pip", env["INVAR_PYTHON"]); code != 0 {
		t.Fatal(out)
	}
	shared, _ := filepath.Glob(filepath.Join(cache(), "torch-2.15/lib/python3*/site-packages/*"))
	own, _ := filepath.Glob(filepath.Join(dir, "venv/lib/python3*/site-packages"))
	if len(own) != 1 || len(shared) == 0 {
		t.Fatalf("%v, %d packages", own, len(shared))
	}
	for _, p := range shared {
		if strings.HasPrefix(filepath.Base(p), "invar") || strings.HasPrefix(filepath.Base(p), "_virtualenv") {
			continue
		}
		if err := os.Symlink(p, filepath.Join(own[0], filepath.Base(p))); err != nil {
			t.Fatal(err)
		}
	}
	bin := filepath.Join(dir, "invar")
	if err := os.WriteFile(bin, invar(t), 0o755); err != nil {
		t.Fatal(err)
	}
	if code, out := execute(t, dir, env, bin, "build", "cpu", "--quiet"); code != 0 {
		t.Fatalf("exit code %d\n%s", code, out)
	}
	delete(env, "PATH")
	delete(env, "HOME")
	return env
}

// spoil changes a byte of an installed library, which level 1 of the probe finds.
func spoil(t *testing.T, env map[string]string) {
	t.Helper()
	libs, _ := filepath.Glob(filepath.Join(env["INVAR_HOME"], "env/*/gen/*/*/lib/*.so"))
	if len(libs) == 0 {
		_ = filepath.WalkDir(env["INVAR_HOME"], func(p string, d os.DirEntry, err error) error {
			if err == nil && strings.Contains(p, "/gen/") && strings.HasSuffix(p, "libinvar_cpu.so") {
				libs = append(libs, p)
			}
			return nil
		})
	}
	if len(libs) == 0 {
		t.Fatal("no library is installed")
	}
	b := []byte(read(t, libs[0]))
	b[len(b)-1] ^= 1
	if err := os.Remove(libs[0]); err != nil { // it may share its bytes with the store
		t.Fatal(err)
	}
	if err := os.WriteFile(libs[0], b, 0o755); err != nil {
		t.Fatal(err)
	}
}
