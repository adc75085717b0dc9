package elffile

import (
	"path/filepath"
	"slices"
	"strings"
)

// A Loader finds libraries as ld.so does, below a root directory.
type Loader struct {
	Root        string   // "" is "/"
	LibraryPath []string // LD_LIBRARY_PATH, split; paths inside the root
	// Loaded are libraries that the process holds already (Python has imported
	// torch before the extension is opened): soname to path.
	Loaded map[string]string

	cache []cacheEntry
	conf  []string
	read  bool
}

// NewLoader makes a Loader below root for a process with this LD_LIBRARY_PATH.
func NewLoader(root, libraryPath string) *Loader {
	dirs := strings.FieldsFunc(libraryPath, func(r rune) bool { return r == ':' || r == ';' })
	return &Loader{Root: root, LibraryPath: dirs, Loaded: map[string]string{}}
}

// A Link is where one needed library was found, or why not.
type Link struct {
	Name   string `json:"name"`
	From   string `json:"from"`             // path of the file that needs it
	Path   string `json:"path,omitempty"`   // "" when it was not found
	Rule   string `json:"rule,omitempty"`   // "RUNPATH", "LD_LIBRARY_PATH", "ld.so.cache", ...
	Reason string `json:"reason,omitempty"` // what was met on the way, e.g. a file for another architecture
}

// Tree resolves the needed libraries of f and theirs, breadth first as ld.so
// does. A library is listed once, with the first file that needs it.
func (l *Loader) Tree(f *File) []Link {
	type node struct {
		file   *File
		parent []*File // chain of files that brought it in; RPATH is inherited along it
	}
	var out []Link
	seen := map[string]bool{}
	queue := []node{{file: f}}
	for len(queue) > 0 {
		n := queue[0]
		queue = queue[1:]
		for _, name := range n.file.Needed {
			if seen[name] {
				continue
			}
			seen[name] = true
			link, file := l.find(name, n.file, n.parent)
			out = append(out, link)
			if file == nil {
				continue
			}
			seen[file.Soname] = true
			queue = append(queue, node{file, append(slices.Clone(n.parent), n.file)})
		}
	}
	return out
}

// find locates name for from. The file is nil when it was not found or when
// the process holds it already.
func (l *Loader) find(name string, from *File, chain []*File) (Link, *File) {
	link := Link{Name: name, From: from.Path}
	if p, ok := l.Loaded[name]; ok {
		link.Path, link.Rule = p, "already loaded"
		return link, nil
	}
	if strings.Contains(name, "/") {
		return l.try(&link, []place{{rule: "path", file: expand(name, from)}}, from)
	}
	return l.try(&link, l.places(name, from, chain), from)
}

type place struct{ rule, file string }

// places lists the candidates in ld.so(8) order: RPATH of the object and of
// those that brought it in (ignored when the object has a RUNPATH),
// LD_LIBRARY_PATH, RUNPATH of the object only, cache, default directories.
func (l *Loader) places(name string, from *File, chain []*File) []place {
	var out []place
	add := func(rule string, dirs ...string) {
		for _, d := range dirs {
			if d != "" {
				out = append(out, place{rule, filepath.Join(d, name)})
			}
		}
	}
	if len(from.Runpath) == 0 {
		for _, f := range append([]*File{from}, reversed(chain)...) {
			if len(f.Runpath) == 0 {
				add("RPATH", expandAll(f.Rpath, f)...)
			}
		}
	}
	add("LD_LIBRARY_PATH", expandAll(l.LibraryPath, from)...)
	add("RUNPATH", expandAll(from.Runpath, from)...)
	l.load()
	if from.Musl() {
		add("musl path", muslDirs(l.Root, from.Arch)...)
		return out
	}
	for _, c := range l.cache {
		if c.name == name {
			out = append(out, place{"ld.so.cache", c.path})
		}
	}
	if len(l.cache) == 0 {
		add("ld.so.conf", l.conf...)
	}
	add("default directory", defaultDirs(from.Arch)...)
	return out
}

func reversed(fs []*File) []*File {
	out := slices.Clone(fs)
	slices.Reverse(out)
	return out
}

// try takes the first candidate that is an ELF file of the right class and
// machine; ld.so skips others without an error.
func (l *Loader) try(link *Link, places []place, from *File) (Link, *File) {
	for _, p := range places {
		f, err := open(l.host(p.file), false)
		switch {
		case err == nil && f.class == from.class && f.machine == from.machine:
			link.Path, link.Rule = p.file, p.rule
			f.Path = p.file
			return *link, f
		case err == nil:
			link.Reason = p.file + " is for " + f.Arch + ", not " + from.Arch
		case isThere(l.host(p.file)):
			link.Reason = err.Error()
		}
	}
	return *link, nil
}

// host turns a path inside the root into one of this machine.
func (l *Loader) host(p string) string {
	if l.Root == "" || l.Root == "/" {
		return p
	}
	return inRoot(l.Root, p)
}

func expandAll(dirs []string, f *File) []string {
	out := make([]string, 0, len(dirs))
	for _, d := range dirs {
		out = append(out, expand(d, f))
	}
	return out
}

// expand replaces the loader's tokens. $LIB differs by distribution; both
// values of an x86_64 Debian and of others are rare enough to take "lib64".
func expand(s string, f *File) string {
	origin := filepath.Dir(f.Path)
	if abs, err := filepath.Abs(origin); err == nil {
		origin = abs
	}
	return strings.NewReplacer(
		"${ORIGIN}", origin, "$ORIGIN", origin,
		"${LIB}", "lib64", "$LIB", "lib64",
		"${PLATFORM}", f.Arch, "$PLATFORM", f.Arch,
	).Replace(s)
}
