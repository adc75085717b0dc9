package doctor

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Bounds of the look into a source tree: it is meant to cost milliseconds.
const (
	maxDepth   = 6
	maxEntries = 20000
	maxScript  = 256 << 10 // bytes of one file
)

// treeMarks tell a source tree from a home folder.
var treeMarks = []string{"setup.py", "pyproject.toml", "CMakeLists.txt", "build.sh", ".git"}

// scripts reads the shell scripts, CMake caches and pyproject files of the
// source tree in the working directory.
func (g *gatherer) scripts(ctx context.Context) Scripts {
	dir := g.o.Dir
	if dir == "" || !g.root.Live() || !isTree(dir) {
		return Scripts{}
	}
	s := Scripts{Dir: dir}
	entries := 0
	_ = filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // what cannot be read is passed over: a build would stop there by itself
		}
		if entries++; entries > maxEntries || ctx.Err() != nil {
			return filepath.SkipAll
		}
		rel, _ := filepath.Rel(dir, p)
		if d.IsDir() {
			if name := d.Name(); p != dir && (name == ".git" || name == "node_modules" || name == "testdata" || strings.Count(rel, string(filepath.Separator)) >= maxDepth) {
				return filepath.SkipDir
			}
			return nil
		}
		if d.Type().IsRegular() {
			s.read(p, rel)
		}
		return nil
	})
	return s
}

func isTree(dir string) bool {
	for _, m := range treeMarks {
		if hostExists(filepath.Join(dir, m)) {
			return true
		}
	}
	return false
}

func (s *Scripts) read(p, rel string) {
	name := filepath.Base(p)
	switch {
	case strings.HasSuffix(name, ".sh"), strings.HasSuffix(name, ".bash"), name == "configure":
		b := head(p)
		s.Read++
		if crlf(b) {
			s.CRLF = append(s.CRLF, rel)
		}
		if sourcesUnderNounset(string(b)) {
			s.Nounset = append(s.Nounset, rel)
		}
	case name == "CMakeCache.txt":
		if bytes.Contains(head(p), []byte("pip-build-env-")) {
			s.Overlays = append(s.Overlays, rel)
		}
	case name == "pyproject.toml":
		if wantsTorch(string(head(p))) {
			s.Isolated = append(s.Isolated, rel)
		}
	}
}

func head(p string) []byte {
	f, err := os.Open(p)
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }()
	b, _ := io.ReadAll(io.LimitReader(f, maxScript))
	return b
}

// crlf reports whether the first line ends with CR LF: the kernel then looks
// for an interpreter called "bash\r", and bash for commands ending in "\r".
func crlf(b []byte) bool {
	line, _, ok := bytes.Cut(b, []byte("\n"))
	return ok && bytes.HasSuffix(line, []byte("\r"))
}

var (
	setOn     = regexp.MustCompile(`(?:^#!\S*sh\s+|(?:^|[;&|])\s*set\s+)(?:[-a-z]+\s+)*(?:-[a-z]*u[a-z]*\b|-[a-z]*o\s+nounset\b)`)
	setOff    = regexp.MustCompile(`(?:^|[;&|]\s*|\s)set\s+(?:\+[a-z]*u[a-z]*\b|\+o\s+nounset\b)`)
	sourceEnv = regexp.MustCompile(`(?:^|[;&|(]\s*|\s)(?:source|\.)\s+\S*set_env\.sh\b`)
)

// sourcesUnderNounset follows set -u and set +u through a script, line by
// line, to a line that sources a set_env.sh.
func sourcesUnderNounset(text string) bool {
	on := false
	for line := range strings.Lines(text) {
		first := strings.HasPrefix(line, "#!")
		if strings.HasPrefix(strings.TrimSpace(line), "#") && !first {
			continue
		}
		if setOff.MatchString(line) {
			on = false
			if sourceEnv.MatchString(line) {
				continue // set +u; source set_env.sh; set -u
			}
		}
		if setOn.MatchString(line) {
			on = true
		}
		if on && sourceEnv.MatchString(line) {
			return true
		}
	}
	return false
}

var (
	buildRequires = regexp.MustCompile(`(?s)\[build-system\].*?requires\s*=\s*\[(.*?)\]`)
	quotedTorch   = regexp.MustCompile(`["']torch(?:[-_]npu)?\b`)
)

// wantsTorch reports whether an isolated build would download another torch.
func wantsTorch(text string) bool {
	m := buildRequires.FindStringSubmatch(text)
	return m != nil && quotedTorch.MatchString(m[1])
}
