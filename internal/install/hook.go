package install

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// States of a hook as status shows them.
const (
	HookOK      = "ok"
	HookMissing = "missing"
	HookOther   = "other prefix" // it names the generation of another prefix
	HookChanged = "changed"      // it holds something that invar did not write
)

var hookRE = regexp.MustCompile(`^(/.*)/env/([0-9a-f]+)/current/site\n?$`)

// readHook says what the hook at path is: its content, its state as seen from
// e, and the prefix that it belongs to.
func (e env) readHook(path string) (content, state, prefix string, err error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", HookMissing, "", nil
	}
	if err != nil {
		return "", "", "", err
	}
	content = string(b)
	m := hookRE.FindStringSubmatch(content)
	switch {
	case content == e.hookLine():
		return content, HookOK, filepath.Dir(filepath.Dir(e.dir)), nil
	case m == nil:
		return content, HookChanged, "", nil
	}
	return content, HookOther, m[1], nil
}

// dangling reports whether the folder that a hook names is gone, so that
// Python passes over it.
func dangling(content string) bool {
	return !exists(filepath.Clean(strings.TrimSpace(content)))
}
