package invar

import (
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
)

// sources digests every file of tree by its path, and lists what those in C,
// C++ and CUDA include.
func sources(tree fs.FS) (digests map[string]string, included map[string][]string, err error) {
	digests, included = map[string]string{}, map[string][]string{}
	err = fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() && name != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "__pycache__") {
			return fs.SkipDir // caches of linters and of Python
		}
		if err != nil || d.IsDir() {
			return err
		}
		b, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(b)
		digests[name] = "sha256:" + hex.EncodeToString(sum[:])
		if slices.Contains(compiled, path.Ext(name)) {
			included[name] = includes(string(b))
		}
		return nil
	})
	return digests, included, err
}

var compiled = []string{".c", ".cc", ".cpp", ".cxx", ".h", ".hh", ".hpp", ".hxx", ".inc", ".inl", ".ipp", ".cu", ".cuh"}

// include matches the directive as far as its operand; blanks may stand
// everywhere but in the names.
var include = regexp.MustCompile(`(?m)^[ \t]*#[ \t]*(?:include|include_next|import)\b[ \t]*(.*)$`)

// includes lists the names that text includes, in quotes or angle brackets;
// "" stands for one that a macro names, or that is put together by a
// continued line.
func includes(text string) []string {
	var out []string
	for _, m := range include.FindAllStringSubmatch(text, -1) {
		operand, name := strings.TrimSpace(m[1]), ""
		for _, quotes := range []string{`""`, "<>"} {
			if rest, ok := strings.CutPrefix(operand, quotes[:1]); ok {
				name, _, _ = strings.Cut(rest, quotes[1:])
			}
		}
		out = append(out, name)
	}
	return out
}
