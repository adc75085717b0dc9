package plan

import (
	"path"
	"slices"
	"strings"
)

// closure lists source and every file of ours that it includes, directly or
// not, sorted. Conditions are not followed: a header in either branch counts.
// ok is false where a file was not looked through, or names a macro: then
// nobody knows without a compiler, and the caller takes every file.
//
// A name is looked up as compilers do: beside the file that includes it, then
// in folders, in their order. One that is found in neither belongs to the
// system or to torch, whose versions are inputs of their own.
func (f Facts) closure(source string, folders []string) (files []string, ok bool) {
	seen := map[string]bool{}
	queue := []string{source}
	for len(queue) > 0 {
		name := queue[0]
		queue = queue[1:]
		if seen[name] {
			continue
		}
		seen[name] = true
		files = append(files, name)
		included, known := f.Includes[name]
		if !known || slices.Contains(included, "") {
			return nil, false
		}
		for _, in := range included {
			for _, dir := range append([]string{path.Dir(name)}, folders...) {
				if found := path.Join(dir, in); f.Sources[found] != "" {
					queue = append(queue, found)
					break
				}
			}
		}
	}
	slices.Sort(files)
	return files, true
}

// compileInputs is the compiler, then source with what it includes. Folders
// below targets/ that argv names with -I are searched; where the includes
// cannot be told it is every file of them and of root.
func (b builder) compileInputs(argv []string, root, source string) []Input {
	folders := []string{root}
	for _, a := range argv {
		if dir, ok := strings.CutPrefix(a, "-Isrc/"); ok && !slices.Contains(folders, dir) {
			folders = append(folders, dir)
		}
	}
	files, ok := b.f.closure(path.Join(root, source), folders)
	if !ok {
		return b.everyInput(folders...)
	}
	out := []Input{b.compilerInput()}
	for _, name := range files {
		out = append(out, Input{"src/" + name, b.f.Sources[name]})
	}
	return out
}

// everyInput is the compiler first, then every source below the folders.
func (b builder) everyInput(folders ...string) []Input {
	out := []Input{b.compilerInput()}
	for _, folder := range folders {
		out = append(out, b.sources(folder)...)
	}
	return out
}

func (b builder) compilerInput() Input {
	return Input{"compiler", b.f.Compiler.Banner + " " + b.f.Compiler.Identity}
}
