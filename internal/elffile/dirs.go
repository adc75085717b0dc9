package elffile

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"

	"github.com/invar-ops/invar/internal/rootfs"
)

// A cacheEntry is one library of ld.so.cache.
type cacheEntry struct{ name, path string }

// maxDepth bounds include files in ld.so.conf and links in a foreign root.
const maxDepth = 16

func (l *Loader) load() {
	if l.read {
		return
	}
	l.read = true
	if b, err := os.ReadFile(l.host("/etc/ld.so.cache")); err == nil {
		l.cache = parseCache(b)
	}
	if len(l.cache) == 0 {
		l.conf = l.readConf("/etc/ld.so.conf", 0)
	}
}

// parseCache reads the format "glibc-ld.so.cache1.1" (glibc 2.2 and newer):
// 20 bytes magic, nlibs, len_strings, 20 unused, then 24-byte entries with
// offsets from the start of that header. An old-format block may come before it.
func parseCache(b []byte) []cacheEntry {
	const magic = "glibc-ld.so.cache1.1"
	at := bytes.Index(b, []byte(magic))
	if at < 0 || len(b) < at+48 {
		return nil
	}
	b = b[at:]
	n := int(binary.NativeEndian.Uint32(b[20:]))
	if n < 0 || n > (len(b)-48)/24 {
		return nil
	}
	text := func(off uint32) string {
		if int64(off) >= int64(len(b)) {
			return ""
		}
		s, _, ok := bytes.Cut(b[off:], []byte{0})
		if !ok {
			return ""
		}
		return string(s)
	}
	out := make([]cacheEntry, 0, n)
	for i := range n {
		e := b[48+24*i:]
		c := cacheEntry{text(binary.NativeEndian.Uint32(e[4:])), text(binary.NativeEndian.Uint32(e[8:]))}
		if c.name != "" && c.path != "" {
			out = append(out, c)
		}
	}
	return out
}

// readConf lists the directories of an ld.so.conf and what it includes.
func (l *Loader) readConf(path string, depth int) []string {
	b, err := os.ReadFile(l.host(path))
	if err != nil || depth > maxDepth {
		return nil
	}
	var out []string
	sc := bufio.NewScanner(bytes.NewReader(b))
	for sc.Scan() {
		line, _, _ := strings.Cut(sc.Text(), "#")
		line = strings.TrimSpace(line)
		if rest, ok := strings.CutPrefix(line, "include"); ok && rest != strings.TrimSpace(rest) {
			out = append(out, l.include(path, strings.TrimSpace(rest), depth)...)
			continue
		}
		dir, _, _ := strings.Cut(line, "=")
		if strings.HasPrefix(dir, "/") {
			out = append(out, strings.TrimSpace(dir))
		}
	}
	return out
}

func (l *Loader) include(from, pattern string, depth int) []string {
	if !filepath.IsAbs(pattern) {
		pattern = filepath.Join(filepath.Dir(from), pattern)
	}
	var root rootfs.Root
	if l.Root != "" {
		var err error
		if root, err = rootfs.Open(l.Root); err != nil {
			return nil
		}
	}
	var out []string
	for _, h := range root.Glob(pattern) {
		out = append(out, l.readConf(h, depth+1)...)
	}
	return out
}

// defaultDirs are what ld.so searches last. Debian compiles its multiarch
// directories in, others lib64; a directory that is not there costs nothing.
func defaultDirs(arch string) []string {
	triplet := map[string]string{"i686": "i386-linux-gnu", "armv7l": "arm-linux-gnueabihf", "ppc64le": "powerpc64le-linux-gnu"}[arch]
	if triplet == "" {
		triplet = arch + "-linux-gnu"
	}
	return []string{"/lib/" + triplet, "/usr/lib/" + triplet, "/lib64", "/usr/lib64", "/lib", "/usr/lib"}
}

// muslDirs reads /etc/ld-musl-ARCH.path; musl has a fixed list without it.
func muslDirs(root, arch string) []string {
	b, err := os.ReadFile(inRoot(root, "/etc/ld-musl-"+arch+".path"))
	if err != nil {
		return []string{"/lib", "/usr/local/lib", "/usr/lib"}
	}
	return strings.FieldsFunc(string(b), func(r rune) bool { return r == '\n' || r == ':' })
}

// inRoot resolves p below root the way chroot would: an absolute link inside
// an unpacked image points into the image, not into this machine.
func inRoot(root, p string) string {
	if root == "" || root == "/" {
		return p
	}
	rest := strings.Split(strings.Trim(filepath.Clean("/"+p), "/"), "/")
	at, links := "/", 0
	for len(rest) > 0 {
		next := filepath.Join(at, rest[0])
		rest = rest[1:]
		to, err := os.Readlink(filepath.Join(root, next))
		if err != nil {
			at = next
			continue
		}
		if links++; links > maxDepth {
			break
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(at, to)
		}
		rest = append(strings.Split(strings.Trim(filepath.Clean(to), "/"), "/"), rest...)
		at = "/"
	}
	return filepath.Join(root, at)
}

func isThere(p string) bool {
	_, err := os.Stat(p)
	return err == nil
}
