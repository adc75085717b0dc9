package python

import (
	"bufio"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

var minor = regexp.MustCompile(`^python(3\.\d+)t?$`)

// Inspect reads the environment of the interpreter exe from files alone. ok is
// false for launchers (scripts) and layouts that files do not explain.
func Inspect(exe string) (p Python, ok bool) {
	abs, err := filepath.Abs(exe)
	if err != nil {
		return p, false
	}
	p.Exe = abs
	if cfg := readVenv(abs); cfg != nil {
		return inspectVenv(p, cfg)
	}
	real, err := filepath.EvalSymlinks(abs)
	if err != nil || isScript(real) {
		return p, false
	}
	return inspectBase(p, real)
}

func inspectVenv(p Python, cfg map[string]string) (Python, bool) {
	p.Venv, p.Prefix = true, filepath.Dir(filepath.Dir(p.Exe))
	p.Version = firstOf(cfg["version_info"], cfg["version"])
	dirs, _ := filepath.Glob(filepath.Join(p.Prefix, "lib", "python3.*", "site-packages"))
	if len(dirs) != 1 {
		return p, false
	}
	p.Purelib, p.Paths = dirs[0], dirs
	if p.Version == "" {
		p.Version = strings.TrimPrefix(filepath.Base(filepath.Dir(dirs[0])), "python")
	}
	// "3.11.7.final.0" is what virtualenv writes.
	if f := strings.SplitN(p.Version, ".", 4); len(f) == 4 {
		p.Version = strings.Join(f[:3], ".")
	}
	if strings.EqualFold(cfg["include-system-site-packages"], "true") {
		if base, ok := Inspect(filepath.Join(cfg["home"], filepath.Base(p.Exe))); ok {
			p.Paths = append(p.Paths, base.Paths...)
		}
	}
	p.Torch = findTorch(p.Paths)
	return p, true
}

func inspectBase(p Python, real string) (Python, bool) {
	m := minor.FindStringSubmatch(filepath.Base(real))
	if m == nil {
		return p, false
	}
	p.Prefix, p.Version = filepath.Dir(filepath.Dir(real)), m[1]
	lib := filepath.Join(p.Prefix, "lib", filepath.Base(real))
	if st, err := os.Stat(filepath.Join(lib, "os.py")); err != nil || st.IsDir() {
		return p, false
	}
	p.Version = firstOf(patchLevel(p.Prefix, filepath.Base(real)), p.Version)
	p.Paths = baseSites(p.Prefix, m[1], lib)
	if len(p.Paths) == 0 {
		return p, false
	}
	p.Purelib = p.Paths[0]
	p.Torch = findTorch(p.Paths)
	return p, true
}

// baseSites knows Debian's arrangement: pip writes to /usr/local/lib/pythonX.Y/
// dist-packages, the distribution's own packages are in /usr/lib/python3/dist-packages.
func baseSites(prefix, version, lib string) []string {
	if isDir(filepath.Join(prefix, "lib", "python3", "dist-packages")) {
		local := filepath.Join(prefix, "local", "lib", "python"+version, "dist-packages")
		return []string{local, filepath.Join(prefix, "lib", "python3", "dist-packages")}
	}
	var out []string
	for _, d := range []string{filepath.Join(lib, "site-packages"), filepath.Join(prefix, "lib64", filepath.Base(lib), "site-packages")} {
		if isDir(d) {
			out = append(out, d)
		}
	}
	return out
}

var patch = regexp.MustCompile(`#define\s+PY_VERSION\s+"([^"]+)"`)

// patchLevel reads the full version from the development headers, where they are.
func patchLevel(prefix, name string) string {
	b, err := os.ReadFile(filepath.Join(prefix, "include", name, "patchlevel.h"))
	if err != nil {
		return ""
	}
	if m := patch.FindSubmatch(b); m != nil {
		return string(m[1])
	}
	return ""
}

// readVenv is the parsed pyvenv.cfg of exe's environment, or nil.
func readVenv(exe string) map[string]string {
	for _, dir := range []string{filepath.Dir(filepath.Dir(exe)), filepath.Dir(exe)} {
		f, err := os.Open(filepath.Join(dir, "pyvenv.cfg"))
		if err != nil {
			continue
		}
		defer func() { _ = f.Close() }()
		out := map[string]string{}
		for s := bufio.NewScanner(f); s.Scan(); {
			if k, v, ok := strings.Cut(s.Text(), "="); ok {
				out[strings.ToLower(strings.TrimSpace(k))] = strings.TrimSpace(v)
			}
		}
		return out
	}
	return nil
}

func isScript(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }()
	head := make([]byte, 2)
	_, _ = f.Read(head)
	return string(head) == "#!"
}

func isDir(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.IsDir()
}

func firstOf(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}

// Headers reports whether Python.h of this interpreter is installed, and where it should be.
func (p Python) Headers() (string, bool) {
	path := filepath.Join(p.Prefix, "include", "python"+p.Minor(), "Python.h")
	_, err := os.Stat(path)
	return path, err == nil
}
