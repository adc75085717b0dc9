// Package rootfs reads a directory tree as if it were the root of a machine:
// an unpacked image, a recorded host, or "/" itself. Absolute links inside the
// tree stay inside it. It never writes and never starts anything.
package rootfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// MaxRead bounds what ReadFile takes of one file, in bytes.
const MaxRead = 16 << 20

// maxLinks is how many links one path may go through, as in Linux.
const maxLinks = 40

// A Root is a directory that is looked at as "/". Paths given to its methods
// are absolute paths inside it; so are the paths it returns, unless said.
//
// The zero Root is this machine as every program sees it: paths go to the
// system as they are, which is much faster than following links by hand.
type Root struct{ dir string }

// Open makes a Root of dir, which must be a directory.
func Open(dir string) (Root, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return Root{}, err
	}
	real, err := filepath.EvalSymlinks(abs)
	if err != nil {
		return Root{}, err
	}
	st, err := os.Stat(real)
	if err != nil {
		return Root{}, err
	}
	if !st.IsDir() {
		return Root{}, fmt.Errorf("%s is not a directory", dir)
	}
	return Root{real}, nil
}

// Live reports whether the root is that of this machine.
func (r Root) Live() bool { return r.plain() || r.dir == "/" }

// plain reports whether this is the zero Root.
func (r Root) plain() bool { return r.dir == "" }

// Dir is where the root lies on this machine.
func (r Root) Dir() string { return r.dir }

// Resolve follows every link of p and gives the path inside the root that p
// means. Parts that do not exist are kept as they are.
func (r Root) Resolve(p string) (string, error) { return r.resolve(p, true) }

func (r Root) resolve(p string, last bool) (string, error) {
	todo := strings.Split(path.Clean("/"+p), "/")[1:]
	at, links := "/", 0
	for len(todo) > 0 {
		name := todo[0]
		todo = todo[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			at = path.Dir(at)
			continue
		}
		next := path.Join(at, name)
		to, err := os.Readlink(r.host(next))
		if err != nil || (len(todo) == 0 && !last) { // not a link, or not there
			at = next
			continue
		}
		if links++; links > maxLinks {
			return "", &fs.PathError{Op: "open", Path: p, Err: syscall.ELOOP}
		}
		if path.IsAbs(to) {
			at = "/"
		}
		todo = append(strings.Split(to, "/"), todo...)
	}
	return at, nil
}

func (r Root) host(p string) string { return filepath.Join(r.dir, p) }

// Host is the path of p on this machine, links resolved inside the root.
func (r Root) Host(p string) (string, error) {
	if r.plain() {
		return p, nil
	}
	in, err := r.Resolve(p)
	if err != nil {
		return "", err
	}
	return r.host(in), nil
}

// Stat describes what p leads to.
func (r Root) Stat(p string) (fs.FileInfo, error) {
	h, err := r.Host(p)
	if err != nil {
		return nil, err
	}
	st, err := os.Stat(h)
	return st, r.named(p, err)
}

// Lstat describes p itself, a link included.
func (r Root) Lstat(p string) (fs.FileInfo, error) {
	if r.plain() {
		return os.Lstat(p)
	}
	in, err := r.resolve(p, false)
	if err != nil {
		return nil, err
	}
	st, err := os.Lstat(r.host(in))
	return st, r.named(p, err)
}

// Readlink is what the link p holds, as written.
func (r Root) Readlink(p string) (string, error) {
	if r.plain() {
		return os.Readlink(p)
	}
	in, err := r.resolve(p, false)
	if err != nil {
		return "", err
	}
	to, err := os.Readlink(r.host(in))
	return to, r.named(p, err)
}

// Real is p with every link resolved inside the root; p itself, cleaned, when
// that cannot be done.
func (r Root) Real(p string) string {
	if r.plain() {
		if real, err := filepath.EvalSymlinks(p); err == nil {
			return real
		}
		if abs, err := filepath.Abs(p); err == nil {
			return abs
		}
		return p
	}
	if in, err := r.Resolve(p); err == nil {
		return in
	}
	return path.Clean("/" + p)
}

// Exists reports whether p leads to something.
func (r Root) Exists(p string) bool {
	_, err := r.Stat(p)
	return err == nil
}

// IsDir reports whether p leads to a directory.
func (r Root) IsDir(p string) bool {
	st, err := r.Stat(p)
	return err == nil && st.IsDir()
}

// IsFile reports whether p leads to a regular file.
func (r Root) IsFile(p string) bool {
	st, err := r.Stat(p)
	return err == nil && st.Mode().IsRegular()
}

// Broken reports whether p is a link that leads nowhere.
func (r Root) Broken(p string) bool {
	st, err := r.Lstat(p)
	return err == nil && st.Mode()&fs.ModeSymlink != 0 && !r.Exists(p)
}

// Open opens p for reading.
func (r Root) Open(p string) (*os.File, error) {
	h, err := r.Host(p)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(h)
	return f, r.named(p, err)
}

// ReadFile reads a regular file, or one of /proc and /sys, up to MaxRead. A
// pipe or a device is refused: it could block for ever.
func (r Root) ReadFile(p string) ([]byte, error) {
	st, err := r.Stat(p)
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "read", Path: p, Err: errors.New("not a regular file")}
	}
	f, err := r.Open(p)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	b, err := io.ReadAll(io.LimitReader(f, MaxRead))
	return b, r.named(p, err)
}

// ReadDir lists the names in p, sorted; none when p is no directory.
func (r Root) ReadDir(p string) []string {
	h, err := r.Host(p)
	if err != nil {
		return nil
	}
	entries, err := os.ReadDir(h)
	if err != nil {
		return nil
	}
	out := make([]string, len(entries))
	for i, e := range entries {
		out[i] = e.Name()
	}
	return out
}

// Glob lists the paths that match pattern (path.Match, one part at a time),
// sorted. Links to directories are followed.
func (r Root) Glob(pattern string) []string {
	if r.plain() {
		hits, _ := filepath.Glob(pattern) // a pattern that is none matches nothing
		return hits
	}
	found := []string{"/"}
	for part := range strings.SplitSeq(strings.Trim(pattern, "/"), "/") {
		var next []string
		for _, dir := range found {
			next = append(next, r.matches(dir, part)...)
		}
		found = next
	}
	slices.Sort(found)
	return found
}

func (r Root) matches(dir, part string) []string {
	if !strings.ContainsAny(part, `*?[\`) {
		p := path.Join(dir, part)
		if _, err := r.Lstat(p); err != nil {
			return nil
		}
		return []string{p}
	}
	var out []string
	for _, name := range r.ReadDir(dir) {
		if ok, err := path.Match(part, name); err == nil && ok {
			out = append(out, path.Join(dir, name))
		}
	}
	return out
}

// named puts the path as the caller knows it into an error of the system.
func (r Root) named(p string, err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return &fs.PathError{Op: pe.Op, Path: p, Err: pe.Err}
	}
	return err
}
