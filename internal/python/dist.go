package python

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

var runs = regexp.MustCompile(`[-_.]+`)

// Normalize is the PEP 503 form of a distribution name.
func Normalize(name string) string {
	return strings.ToLower(runs.ReplaceAllString(name, "-"))
}

// Dists lists the distributions in the site directory dir, from the names of
// its dist-info and egg-info entries. A directory that is not there has none.
func Dists(dir string) []Dist {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var out []Dist
	for _, e := range entries {
		stem, ok := strings.CutSuffix(e.Name(), ".dist-info")
		if !ok {
			if stem, ok = strings.CutSuffix(e.Name(), ".egg-info"); !ok {
				continue
			}
			stem = regexp.MustCompile(`-py\d+(\.\d+)?$`).ReplaceAllString(stem, "")
		}
		name, version, ok := strings.Cut(stem, "-")
		if !ok {
			continue
		}
		out = append(out, Dist{Name: Normalize(name), Version: version, Dir: dir})
	}
	return out
}

// Lookup finds name in the environment; the first site directory wins, as on sys.path.
func (p Python) Lookup(name string) (Dist, bool) {
	want := Normalize(name)
	for _, dir := range p.Paths {
		for _, d := range Dists(dir) {
			if d.Name == want {
				return d, true
			}
		}
	}
	return Dist{}, false
}

func findTorch(paths []string) Dist {
	for _, dir := range paths {
		// torch has thousands of neighbours at most; a glob avoids parsing them all.
		hits, _ := filepath.Glob(filepath.Join(dir, "torch-*.dist-info"))
		for _, h := range hits {
			if _, err := os.Stat(filepath.Join(dir, "torch")); err != nil {
				continue // metadata without the package: an uninstall that was cut short
			}
			v := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(h), "torch-"), ".dist-info")
			return Dist{Name: "torch", Version: v, Dir: dir}
		}
	}
	return Dist{}
}
