// Package libc says which C library lies below a root, from the library's own
// words. Nothing is started, so a root may be of another architecture.
package libc

import (
	"path"
	"regexp"
	"strings"

	"github.com/invar-ops/invar/internal/rootfs"
)

// A Library is the C library of a root.
type Library struct {
	Kind    string // "glibc" or "musl"
	Version string // "2.36"; of musl "" where no package database tells
	File    string // libc.so.6, or musl's loader
}

// Folders are where libraries of the system lie, without reading ld.so.cache.
var Folders = []string{"/lib/*-linux-gnu*", "/usr/lib/*-linux-gnu*", "/lib64", "/usr/lib64", "/lib", "/usr/lib"}

var banner = regexp.MustCompile(`GNU C Library [^\n]{0,80}?version ([0-9]+\.[0-9]+)`)

// Find looks for glibc, then for musl; ok is false when there is neither. A
// root with both, as Debian has with its package musl, is one of glibc.
func Find(r rootfs.Root) (l Library, ok bool) {
	for _, dir := range Folders {
		for _, p := range r.Glob(dir + "/libc.so.6") {
			b, err := r.ReadFile(p)
			if err != nil {
				continue
			}
			if m := banner.FindSubmatch(b); m != nil {
				return Library{"glibc", string(m[1]), p}, true
			}
		}
	}
	for _, dir := range Folders {
		for _, p := range r.Glob(dir + "/ld-musl-*.so.1") {
			return Library{"musl", muslVersion(r), p}, true
		}
	}
	return Library{}, false
}

// muslVersion asks Alpine's package database: the library says its version
// only when it is started.
func muslVersion(r rootfs.Root) string {
	b, err := r.ReadFile("/lib/apk/db/installed")
	if err != nil {
		return ""
	}
	_, rest, found := strings.Cut(string(b), "P:musl\nV:")
	if !found {
		return ""
	}
	v, _, _ := strings.Cut(rest, "\n")
	v, _, _ = strings.Cut(v, "-")
	return v
}

// loaders name an architecture.
var loaders = []struct{ pattern, arch string }{
	{"ld-linux-x86-64.so.2", "x86_64"},
	{"ld-linux-aarch64.so.1", "aarch64"},
	{"ld-musl-x86_64.so.1", "x86_64"},
	{"ld-musl-aarch64.so.1", "aarch64"},
}

// Loaders lists the loaders of programs below the root.
func Loaders(r rootfs.Root) []string {
	var out []string
	for _, dir := range Folders {
		for _, l := range loaders {
			out = append(out, r.Glob(dir+"/"+l.pattern)...)
		}
	}
	return out
}

// Arch is the architecture that the first loader below the root is for, "" without one.
func Arch(r rootfs.Root) string {
	for _, p := range Loaders(r) {
		for _, l := range loaders {
			if path.Base(p) == l.pattern {
				return l.arch
			}
		}
	}
	return ""
}
