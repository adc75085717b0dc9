package install

import (
	"archive/zip"
	"os"
	"path/filepath"
	"strings"

	"github.com/invar-ops/invar/internal/python"
)

func isSourceTree(dir string) bool {
	for _, up := range []string{dir, filepath.Dir(filepath.Clean(dir))} { // src/ layouts too
		for _, mark := range []string{"pyproject.toml", "setup.py", ".git"} {
			if exists(filepath.Join(up, mark)) {
				return true
			}
		}
	}
	return false
}

// codeIn lists what Python could import as the package from dir. A folder
// without __init__ is a namespace, which loses to every regular package.
func codeIn(dir string) []string {
	var out []string
	if p := filepath.Join(dir, Package); isRegularPackage(p) {
		out = append(out, p)
	}
	for _, pattern := range []string{Package + ".py", Package + ".pyc", Package + ".so", Package + ".*.so"} {
		hits, _ := filepath.Glob(filepath.Join(dir, pattern))
		out = append(out, hits...)
	}
	return out
}

func isRegularPackage(dir string) bool {
	for _, pattern := range []string{"__init__.py", "__init__.pyc", "__init__.so", "__init__.*.so"} {
		if hits, _ := filepath.Glob(filepath.Join(dir, pattern)); len(hits) > 0 {
			return true
		}
	}
	return false
}

// metadataIn lists dist-info, egg-info and what belongs to them. Metadata
// without a package is the rest of an uninstall; importlib.metadata believes it.
func metadataIn(dir string) []string {
	entries, _ := os.ReadDir(dir)
	var out []string
	for _, e := range entries {
		name := e.Name()
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

func describe(dir string, meta []python.Dist, code []string) string {
	what := Package
	if len(meta) == 0 {
		return what + " (without metadata)"
	}
	what += " " + meta[0].Version
	if len(code) == 0 {
		what += " (metadata only)"
	}
	hits, _ := filepath.Glob(filepath.Join(dir, "*.dist-info", "INSTALLER"))
	for _, h := range hits {
		b, err := os.ReadFile(h)
		name, _, _ := strings.Cut(filepath.Base(filepath.Dir(h)), "-")
		if err == nil && python.Normalize(name) == Dist {
			what += " (installed by " + strings.TrimSpace(string(b)) + ")"
		}
	}
	return what
}

// archive looks into a zip file on sys.path.
func (s *search) archive(e entry) {
	z, err := zip.OpenReader(e.dir)
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
