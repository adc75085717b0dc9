package install

import (
	"archive/zip"
	"path/filepath"
	"slices"
	"strings"

	"github.com/invar-ops/invar/internal/python"
	"github.com/invar-ops/invar/internal/rootfs"
)

func (s *search) isSourceTree(dir string) bool {
	for _, up := range []string{dir, filepath.Dir(filepath.Clean(dir))} { // src/ layouts too
		for _, mark := range []string{"pyproject.toml", "setup.py", ".git"} {
			if s.root.Exists(filepath.Join(up, mark)) {
				return true
			}
		}
	}
	return false
}

// codeIn lists what Python could import as the package from dir. A folder
// without __init__ is a namespace, which loses to every regular package.
func (s *search) codeIn(dir string) []string {
	var out []string
	if p := filepath.Join(dir, Package); isRegularPackage(s.root, p) {
		out = append(out, p)
	}
	for _, pattern := range []string{Package + ".py", Package + ".pyc", Package + ".so", Package + ".*.so"} {
		out = append(out, s.root.Glob(filepath.Join(dir, pattern))...)
	}
	return out
}

func isRegularPackage(root rootfs.Root, dir string) bool {
	for _, pattern := range []string{"__init__.py", "__init__.pyc", "__init__.so", "__init__.*.so"} {
		if len(root.Glob(filepath.Join(dir, pattern))) > 0 {
			return true
		}
	}
	return false
}

// metadataIn lists dist-info, egg-info and what belongs to them. Metadata
// without a package is the rest of an uninstall; importlib.metadata believes it.
func (s *search) metadataIn(dir string) []string {
	var out []string
	for _, name := range s.root.ReadDir(dir) {
		stem, ok := "", false
		for _, end := range []string{".dist-info", ".egg-info", ".egg-link", ".libs", ".data", ".egg"} {
			if stem, ok = strings.CutSuffix(name, end); ok {
				break
			}
		}
		base, _, _ := strings.Cut(stem, "-")
		if ok && python.Normalize(base) == Dist {
			out = append(out, filepath.Join(dir, name))
		}
	}
	return out
}

// metadata lists the distributions of the package that are installed in dir.
func (s *search) metadata(dir string) []python.Dist {
	host, err := s.root.Host(dir)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(python.Dists(host), func(d python.Dist) bool { return d.Name != Dist })
}

func (s *search) describe(dir string, meta []python.Dist, code []string) string {
	what := Package
	if len(meta) == 0 {
		return what + " (without metadata)"
	}
	what += " " + meta[0].Version
	if len(code) == 0 {
		what += " (metadata only)"
	}
	for _, h := range s.root.Glob(filepath.Join(dir, "*.dist-info", "INSTALLER")) {
		b, err := s.root.ReadFile(h)
		name, _, _ := strings.Cut(filepath.Base(filepath.Dir(h)), "-")
		if err == nil && python.Normalize(name) == Dist {
			what += " (installed by " + strings.TrimSpace(string(b)) + ")"
		}
	}
	return what
}

// archive looks into a zip file on sys.path.
func (s *search) archive(e entry) {
	host, err := s.root.Host(e.dir)
	if err != nil {
		return
	}
	z, err := zip.OpenReader(host)
	if err != nil {
		return
	}
	defer z.Close()
	for _, f := range z.File {
		if strings.HasPrefix(f.Name, Package+"/__init__.") || strings.HasPrefix(f.Name, Package+".py") {
			f := Foreign{Path: e.dir, What: Package + " in a zip file", Via: e.via, Wins: !e.late}
			s.protect(&f, e)
			s.found = append(s.found, f)
			return
		}
	}
}
