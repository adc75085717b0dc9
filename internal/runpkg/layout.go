package runpkg

import (
	"path"
	"strings"

	"github.com/invar-ops/invar/internal/report"
)

// A layout is the tree that a list of entries would make. It refuses every
// entry that could write or point outside, before anything is written.
type layout struct {
	nodes map[string]node
}

type node struct {
	kind  string
	link  string
	round int // which payload of the package named it last
}

// maxHops is where Linux gives up on a chain of links too (ELOOP).
const maxHops = 40

func newLayout() *layout { return &layout{nodes: map[string]node{}} }

// add places an entry whose path is clean and relative. round counts the
// payloads of a package: a later one may replace files of an earlier one,
// which is what makeself --append is for. again is true when this payload has
// the path already: makeself packs the files of a folder without subfolders
// twice, so that alone is no reason to refuse, but the two must be equal.
func (l *layout) add(e Entry, round int) (again bool, err error) {
	for dir := path.Dir(e.Path); dir != "."; dir = path.Dir(dir) {
		switch n, ok := l.nodes[dir]; {
		case !ok:
			l.nodes[dir] = node{kind: TypeDir, round: round}
		case n.kind != TypeDir:
			return false, refuse("%s lies below %s, which is a %s", e.Path, dir, n.kind).
				WithWant("folders only above a file", "a "+n.kind)
		}
	}
	old, ok := l.nodes[e.Path]
	if ok && old.kind != e.Type {
		return false, refuse("%s is both a %s and a %s", e.Path, old.kind, e.Type)
	}
	again = ok && old.round == round && e.Type != TypeDir
	if again && old.link != e.Link {
		return true, different(e.Path)
	}
	l.nodes[e.Path] = node{kind: e.Type, link: e.Link, round: round}
	if e.Type == TypeLink && strings.HasPrefix(e.Link, "/") {
		return again, outside(e.Path, e.Link)
	}
	return again, nil
}

func different(p string) error {
	return refuse("%s is in the archive twice, with different content", p).
		WithHint("which of them counts is not certain: pack the package again, without --append")
}

// checkLinks follows every link through all others. It is the last step: a
// later link can turn the path of an earlier one.
func (l *layout) checkLinks() error {
	for p, n := range l.nodes {
		if n.kind == TypeLink && l.leadsOut(p, n.link) {
			return outside(p, n.link)
		}
	}
	return nil
}

func (l *layout) leadsOut(from, link string) bool {
	at := parent(from)
	todo := strings.Split(link, "/")
	for hops := 0; len(todo) > 0; {
		step := todo[0]
		todo = todo[1:]
		switch step {
		case "", ".":
			continue
		case "..":
			if at == "" {
				return true
			}
			at = parent(at)
			continue
		}
		next := path.Join(at, step)
		n := l.nodes[next]
		if n.kind != TypeLink {
			at = next // also when nothing is there: something may come there later
			continue
		}
		if strings.HasPrefix(n.link, "/") {
			return true
		}
		if hops++; hops > maxHops {
			return false // the kernel refuses such a chain, so it leads nowhere
		}
		todo = append(strings.Split(n.link, "/"), todo...)
	}
	return false
}

// parent is the folder above p; the root is "".
func parent(p string) string {
	if dir := path.Dir(p); dir != "." {
		return dir
	}
	return ""
}

func outside(p, link string) error {
	return refuse("link %s leads out of the tree: %s", p, link).
		WithWant("a relative link to something inside the package", link)
}

// refuse is a refusal of content that a package has no good reason to hold.
func refuse(format string, args ...any) *report.Problem {
	return report.Problemf(report.CheckFailed, format, args...).
		WithHint("do not use this package; ask where it came from")
}
