package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"

	securejoin "github.com/cyphar/filepath-securejoin"
	"github.com/invar-ops/invar/internal/run"
)

// An asker reads files below a root and starts tools that are installed there.
type asker struct {
	root    string
	runner  run.Runner // nil: no tool is started
	env     []string
	timeout time.Duration
	whole   bool // Options.Whole
}

// path is where name lies on this machine; links stay inside the root.
func (a *asker) path(name string) (string, error) {
	if a.root == "/" {
		return name, nil
	}
	return securejoin.SecureJoin(a.root, name)
}

func (a *asker) read(name string) (string, error) {
	p, err := a.path(name)
	if err != nil {
		return "", err
	}
	f, err := os.Open(p)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	st, err := f.Stat()
	if err != nil {
		return "", err
	}
	// A pipe or a device would block or never end.
	if st.IsDir() || !st.Mode().IsRegular() {
		return "", fmt.Errorf("%s is %s, want a file", name, kindOf(st.Mode()))
	}
	b, err := io.ReadAll(io.LimitReader(f, maxText))
	return string(b), err
}

// line is the first line of a file, or "".
func (a *asker) line(name string) string {
	s, err := a.read(name)
	if err != nil {
		return ""
	}
	s, _, _ = strings.Cut(s, "\n")
	return strings.TrimSpace(strings.Trim(s, "\x00"))
}

func (a *asker) exists(name string) bool {
	p, err := a.path(name)
	if err != nil {
		return false
	}
	_, err = os.Stat(p)
	return err == nil
}

func (a *asker) list(name string) ([]fs.DirEntry, error) {
	p, err := a.path(name)
	if err != nil {
		return nil, err
	}
	return os.ReadDir(p)
}

// glob is filepath.Glob below the root, with results as names inside it.
func (a *asker) glob(pattern string) []string {
	if a.root == "/" {
		found, _ := filepath.Glob(pattern)
		return found
	}
	found, _ := filepath.Glob(filepath.Join(a.root, pattern))
	for i := range found {
		found[i] = strings.TrimPrefix(found[i], filepath.Clean(a.root))
	}
	sort.Strings(found)
	return found
}

// file is the evidence of one file.
func (a *asker) file(source, name string) Evidence {
	start := time.Now()
	e := Evidence{Source: source, Asked: name}
	text, err := a.read(name)
	e.Elapsed = time.Since(start)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		e.Absent, e.Reason = true, "no such file"
	case err != nil:
		e.Reason = reason(err)
	default:
		e.Answer = text
	}
	return e
}

// reason is err without the path, which the evidence names already.
func reason(err error) string {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err.Error()
	}
	return err.Error()
}

func kindOf(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "a directory"
	case m&fs.ModeCharDevice != 0:
		return "a device"
	case m.IsRegular():
		return "a file"
	}
	return "no regular file"
}

// A tool is a program that was looked for.
type tool struct {
	path   string // inside the root; empty when it is not installed
	reason string // why it cannot be started although a name of it exists
}

// find looks for a program on the PATH of the environment and in dirs.
func (a *asker) find(name string, dirs []string) tool {
	var t tool
	for _, d := range append(filepath.SplitList(run.Getenv(a.env, "PATH")), dirs...) {
		if !strings.HasPrefix(d, "/") {
			continue
		}
		p := filepath.Join(d, name)
		at, err := a.path(p)
		if err != nil {
			continue
		}
		st, err := os.Stat(at)
		switch {
		case err != nil:
			if l, lerr := os.Lstat(at); lerr == nil && l.Mode()&fs.ModeSymlink != 0 && t.reason == "" {
				t.reason = p + " is a link to nothing"
			}
		case !st.Mode().IsRegular():
			// docker makes an empty directory where a bind mount's source is missing.
			t.reason = p + " is " + kindOf(st.Mode()) + ", want a program"
		case st.Mode()&0o111 == 0:
			t.reason = p + " is not executable"
		default:
			return tool{path: p}
		}
	}
	return t
}

// ask starts the tool with args and keeps what it said.
func (a *asker) ask(ctx context.Context, source string, t tool, args ...string) Evidence {
	argv := append([]string{t.path}, args...)
	e := Evidence{Source: source, Asked: strings.Join(append([]string{filepath.Base(t.path)}, args...), " ")}
	start := time.Now()
	res, err := a.runner.Run(ctx, run.Cmd{Argv: argv, Env: run.Setenv(a.env, "LC_ALL", "C"), Timeout: a.timeout})
	e.Elapsed = time.Since(start)
	e.Answer = string(res.Stdout)
	if s := string(res.Stderr); strings.TrimSpace(s) != "" {
		e.Answer = strings.TrimRight(e.Answer, "\n") + "\n" + s
	}
	e.ExitCode = res.Code
	if err != nil {
		e.Reason = err.Error()
	}
	return e
}

// bound is the name of the kernel driver that a link in sysfs points to, or "-".
func (a *asker) bound(link string) string {
	at := link
	if a.root != "/" {
		at = filepath.Join(a.root, link)
	}
	to, err := os.Readlink(at)
	if err != nil {
		return "-"
	}
	return filepath.Base(to)
}
