package install

import (
	"fmt"
	"strings"

	"github.com/invar-ops/invar/internal/run"
)

// protect says when moving a copy aside would hurt, and then what to type
// instead: sources that somebody works on, a zip file that may hold more than
// this package, a .pth file that names other folders too. A .pth file with
// nothing else in it is what goes, not the folder that it names.
func (s *search) protect(f *Foreign, e entry) {
	switch {
	case e.pth != "":
		b, _ := s.root.ReadFile(e.pth)
		f.Parts = []string{e.pth}
		if entriesOf(string(b)) > 1 {
			f.Stuck = fmt.Sprintf("%s names other folders too; take line %d out of it: sed -i.bak %dd %s", e.pth, e.line, e.line, run.Quote(e.pth))
		}
	case e.via == "PYTHONPATH" && s.isSourceTree(e.dir):
		f.Stuck = fmt.Sprintf("%s is a source tree; take it out, here and where the package is imported: %s", e.dir, s.without(e.dir))
	case e.via == "PYTHONPATH" && !s.root.IsDir(e.dir):
		f.Stuck = fmt.Sprintf("%s may hold other packages too; take it out, here and where the package is imported: %s", e.dir, s.without(e.dir))
	}
}

// without is the command that takes dir out of PYTHONPATH.
func (s *search) without(dir string) string {
	var left []string
	for d := range strings.SplitSeq(s.python, ":") {
		if d != "" && s.root.Real(d) != s.root.Real(dir) {
			left = append(left, d)
		}
	}
	if len(left) == 0 {
		return "unset PYTHONPATH"
	}
	return "export PYTHONPATH=" + run.Quote(strings.Join(left, ":"))
}

// entriesOf counts the lines of a .pth file that do something.
func entriesOf(pth string) (n int) {
	for line := range strings.Lines(pth) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			n++
		}
	}
	return n
}
