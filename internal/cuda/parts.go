package cuda

import (
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/invar-ops/invar/internal/version"
)

// partRules is data/parts.yaml.
type partRules struct {
	Sources []struct {
		Fact string `yaml:"fact"`
		From string `yaml:"from"`
	} `yaml:"sources"`
	Parts    []part   `yaml:"parts"`
	Together []string `yaml:"together"`
	Index    struct {
		From    string `yaml:"from"`
		Older   string `yaml:"older"`
		Command string `yaml:"command"`
	} `yaml:"index"`
}

// A part is one file that compiling needs.
type part struct {
	Name  string   `yaml:"name"`
	Files []string `yaml:"files"` // below the home; the first that is there counts
	Wheel string   `yaml:"wheel"`
	Tool  bool     `yaml:"tool"` // reads machine code; not needed to make it
}

var loadParts = sync.OnceValues(func() (*partRules, error) {
	var r partRules
	return &r, decode("parts.yaml", &r)
})

// find is where the part lies below home, or "".
func (p part) find(home string) string {
	for _, f := range p.Files {
		hits, err := filepath.Glob(filepath.Join(escape(home), f))
		if err != nil {
			continue
		}
		for _, h := range hits {
			if st, err := os.Stat(h); err == nil && st.Mode().IsRegular() {
				return h
			}
		}
	}
	return ""
}

// escape keeps a folder's own brackets and stars out of a pattern.
func escape(dir string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(dir)
}

// Wheels lists the requirement specifiers of the whole compiler for CUDA minor.
func Wheels(minor string) ([]string, error) {
	r, err := loadParts()
	if err != nil {
		return nil, err
	}
	var out []string
	seen := map[string]bool{}
	for _, p := range r.Parts {
		if !seen[p.Wheel] {
			out = append(out, p.Wheel+"=="+minor+".*")
		}
		seen[p.Wheel] = true
	}
	return out, nil
}

// OnIndex reports whether the package index has a compiler for this CUDA, and
// how one is had where it has none.
func OnIndex(cuda string) (ok bool, why, command string) {
	r, err := loadParts()
	if err != nil {
		return false, err.Error(), ""
	}
	v, err := version.Parse(version.CUDA, cuda)
	if err != nil {
		return false, err.Error(), ""
	}
	if version.Within(version.CUDA, ">= "+r.Index.From, cuda) {
		return true, "", ""
	}
	minor := v.Base(2)
	return false, r.Index.Older, strings.NewReplacer("{minor}", minor, "{dash}", strings.ReplaceAll(minor, ".", "-")).Replace(r.Index.Command)
}

// MinorOf is "13.2" of "13.2.86"; text that is no version stays as it is.
func MinorOf(v string) string {
	p, err := version.Parse(version.CUDA, v)
	if err != nil {
		return v
	}
	return p.Base(2)
}

// majorOf is "13" of "13.2.86".
func majorOf(v string) string {
	p, err := version.Parse(version.CUDA, v)
	if err != nil {
		return v
	}
	return p.Base(1)
}
