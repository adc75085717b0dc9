package install

import (
	"bufio"
	"bytes"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/invar-ops/invar/internal/rootfs"
	"github.com/invar-ops/invar/internal/run"
)

// A Foreign is a copy of the package that something else put on sys.path.
type Foreign struct {
	Path  string   `json:"path"`            // what Python would import, or the metadata
	What  string   `json:"what"`            // "batch_invariant_ops 0.9 (pip)"
	Via   string   `json:"via"`             // "site-packages", "PYTHONPATH", a .pth file
	Wins  bool     `json:"wins"`            // it comes before invar's own on sys.path
	Parts []string `json:"parts"`           // what has to go to make it disappear
	Stuck string   `json:"stuck,omitempty"` // why it must not be moved, "" when it may
}

// An entry is one place on sys.path and how it came there.
type entry struct {
	dir  string
	via  string
	pth  string // the .pth file that names it, "" otherwise
	line int    // where it does, from 1
	late bool   // after the hook
}

// A search looks for copies of the package on the path of one Python.
type search struct {
	root    rootfs.Root
	purelib string
	own     func(dir string) bool // belongs to an invar prefix
	seen    map[string]bool
	python  string // PYTHONPATH
	late    bool
	found   []Foreign
}

// findForeign walks sys.path as Python builds it: PYTHONPATH, then each site
// directory with what its .pth files add, in name order. own tells folders
// that invar's hooks name.
func findForeign(root rootfs.Root, paths []string, purelib string, environ []string, own func(string) bool) []Foreign {
	s := &search{root: root, purelib: root.Real(purelib), own: own, seen: map[string]bool{}}
	if s.python = run.Getenv(environ, "PYTHONPATH"); s.python != "" {
		for dir := range strings.SplitSeq(s.python, ":") {
			s.place(entry{dir: dir, via: "PYTHONPATH"})
		}
	}
	for _, dir := range paths {
		s.site(dir)
	}
	return s.found
}

func real(p string) string { return rootfs.Root{}.Real(p) }

// site looks at a site directory, then follows its .pth files.
func (s *search) site(dir string) {
	if s.seen[s.root.Real(dir)] {
		return
	}
	s.place(entry{dir: dir, via: "site-packages", late: s.late})
	names := s.root.Glob(filepath.Join(dir, "*.pth")) // sorted, as in site.py
	for _, pth := range names {
		if filepath.Base(pth) == HookName {
			if s.root.Real(dir) == s.purelib {
				s.late = true
			}
			continue
		}
		// Where the hook is not there yet, it will come between its neighbours.
		if s.root.Real(dir) == s.purelib && filepath.Base(pth) > HookName {
			s.late = true
		}
		s.follow(dir, pth)
	}
	if s.root.Real(dir) == s.purelib {
		s.late = true
	}
}

// follow reads one .pth file as site.py does: lines that start with "import "
// are code, others name a folder.
func (s *search) follow(dir, pth string) {
	b, err := s.root.ReadFile(pth)
	if err != nil {
		return
	}
	sc := bufio.NewScanner(bytes.NewReader(b))
	for n := 1; sc.Scan(); n++ {
		line := strings.TrimRight(sc.Text(), " \t\r")
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case strings.HasPrefix(line, "import ") || strings.HasPrefix(line, "import\t"):
			s.code(dir, pth, line)
		default:
			to := line
			if !filepath.IsAbs(to) {
				to = filepath.Join(dir, to)
			}
			s.place(entry{dir: to, via: pth, pth: pth, line: n, late: s.late})
		}
	}
}

var importedRE = regexp.MustCompile(`[A-Za-z_][A-Za-z0-9_]*`)

// code looks at an executable line: the editable installs of setuptools and
// others import a module beside the .pth that maps package names to sources.
func (s *search) code(dir, pth, line string) {
	quoted := regexp.MustCompile(`['"]` + Package + `['"]`)
	hit := quoted.MatchString(line)
	parts := []string{pth}
	names := importedRE.FindAllString(line, -1)
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		file := filepath.Join(dir, name+".py")
		b, err := s.root.ReadFile(file)
		if err == nil && (quoted.Match(b) || (strings.Contains(name, Package) && strings.Contains(name, "editable"))) {
			hit, parts = true, append(parts, file)
		}
	}
	if hit {
		// A finder is asked wherever its .pth stands, so it counts as first.
		s.found = append(s.found, Foreign{Path: pth, What: Package + " (editable install)", Via: pth, Wins: true, Parts: parts})
	}
}

// place looks for the package in one entry of sys.path.
func (s *search) place(e entry) {
	r := s.root.Real(e.dir)
	if s.seen[r] || s.own(r) {
		return
	}
	s.seen[r] = true
	if s.root.IsFile(r) {
		s.archive(e)
		return
	}
	meta := s.metadata(e.dir)
	code := s.codeIn(e.dir)
	side := s.metadataIn(e.dir)
	if len(code) == 0 && len(side) == 0 {
		return
	}
	f := Foreign{Path: e.dir, Via: e.via, Wins: !e.late, Parts: slices.Concat(code, side), What: s.describe(e.dir, meta, code)}
	if len(code) > 0 {
		f.Path = code[0]
	} else {
		f.Path = side[0]
	}
	s.protect(&f, e)
	s.found = append(s.found, f)
}
