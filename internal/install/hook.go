package install

import (
	"errors"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// States of a hook as status shows them.
const (
	HookOK      = "ok"
	HookMissing = "missing"
	HookOther   = "other prefix" // it names the generation of another prefix
	HookChanged = "changed"      // it holds something that invar did not write
)

// startupLine runs the start-up module of the current generation whenever
// Python starts. Where it is not there (before the switch, after a rollback)
// nothing happens: a .pth file that fails would stop at that line, with a trace.
func (e env) startupLine() string {
	path := strconv.QuoteToASCII(filepath.Join(e.dir, "current", startupModule)) // Python reads it the same
	return "import os, sys; p = " + path + `; os.path.exists(p) and exec(compile(open(p).read(), p, "exec"), {"__file__": p, "__name__": "_invar_hook"})` + "\n"
}

// startupModule lies beside site, since it belongs to no wheel.
const startupModule = "start/_invar_hook.py"

var hookRE = regexp.MustCompile(`^(/.*)/env/([0-9a-f]+)/current/site\n?(?:import os, sys; p = .*/current/start/_invar_hook\.py.*\n)?$`)

// hookContent is what the hook of this environment holds, with the line that
// runs the start-up module or without.
func (e env) hookContent(startup bool) string {
	if startup {
		return e.hookLine() + e.startupLine()
	}
	return e.hookLine()
}

// ownHook reports whether content is a hook of this environment.
func (e env) ownHook(content string) bool {
	return content == e.hookContent(false) || content == e.hookContent(true)
}

// readHook says what the hook at path is: its content, its state as seen from
// e, and the prefix that it belongs to.
func (e env) readHook(path string) (content, state, prefix string, err error) {
	b, err := e.root.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", HookMissing, "", nil
	}
	if err != nil {
		return "", "", "", err
	}
	content = string(b)
	m := hookRE.FindStringSubmatch(content)
	switch {
	case e.ownHook(content):
		return content, HookOK, filepath.Dir(filepath.Dir(e.dir)), nil
	case m == nil:
		return content, HookChanged, "", nil
	}
	return content, HookOther, m[1], nil
}

// dangling reports whether the folder that a hook names is gone, so that
// Python passes over it.
func dangling(content string) bool {
	first, _, _ := strings.Cut(content, "\n")
	return !exists(filepath.Clean(strings.TrimSpace(first)))
}
