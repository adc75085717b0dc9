package imagefs

import (
	"archive/tar"
	"fmt"
	"path"
	"strings"

	"github.com/invar-ops/invar/internal/report"
)

// A node is what one path of the image is, after the layers so far.
type node struct {
	kind  byte // of package tar
	size  int64
	layer int // that brought it, from 0
	mode  int64
	uid   int
	gid   int
	kept  bool // it lies in the folder, with its content or as a hole
}

// maxEntries bounds the names of one image.
const maxEntries = 4 << 20

// A tree is the merged file system of an image. Paths have no first slash.
type tree struct {
	nodes  map[string]node
	hidden int64 // bytes of files that later layers removed or replaced
}

// put adds n at p, in place of what was there: a folder only replaces what is none.
func (t *tree) put(p string, n node) (replaced bool, err error) {
	if len(t.nodes) >= maxEntries {
		return false, report.Problemf(report.Failed, "the image has more than %d files", maxEntries)
	}
	old, there := t.nodes[p]
	if there && (old.kind != tar.TypeDir || n.kind != tar.TypeDir) {
		t.remove(p, n.layer)
		replaced = true
	}
	t.nodes[p] = n
	return replaced, nil
}

// remove takes p and what is below it away.
func (t *tree) remove(p string, layer int) {
	t.drop(p, layer)
	n := t.nodes[p]
	delete(t.nodes, p)
	if n.kind == tar.TypeDir {
		t.empty(p, layer+1)
	}
}

// empty takes away what layers before before have put below p, and lists it.
func (t *tree) empty(p string, before int) (gone []string) {
	below := strings.TrimPrefix(p+"/", "/")
	for q, n := range t.nodes {
		if strings.HasPrefix(q, below) && n.layer < before {
			t.drop(q, before-1)
			delete(t.nodes, q)
			gone = append(gone, q)
		}
	}
	return gone
}

// drop counts a file that a later layer hides.
func (t *tree) drop(p string, layer int) {
	if n, ok := t.nodes[p]; ok && n.layer < layer && n.kind == tar.TypeReg {
		t.hidden += n.size
	}
}

// safeName is the name of an entry inside the image. Names that lead out of it
// are refused, as every runtime does.
func safeName(name string) (string, error) {
	for part := range strings.SplitSeq(name, "/") {
		if part == ".." {
			return "", outOfTree(name)
		}
	}
	if strings.ContainsRune(name, 0) {
		return "", outOfTree(name)
	}
	return strings.TrimPrefix(path.Clean("/"+name), "/"), nil
}

func outOfTree(name string) error {
	return report.Problemf(report.Failed, "a layer holds %q, which leads out of the image", name).
		WithWant("paths below the root", fmt.Sprintf("%q", name)).
		WithHint("no builder writes that: do not run this image")
}
