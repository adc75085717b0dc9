package runpkg

import (
	"archive/tar"
	"io/fs"
	"path"
	"strings"
)

// A member is one header of a tar after the checks that need nothing but it.
type member struct {
	Entry
	hardlink string // path of the earlier file that this is another name of
}

// readMember refuses what a package of operators has no reason to hold. skip
// is true for the entry of the root folder itself.
func readMember(h *tar.Header) (m member, skip bool, err error) {
	name, err := safePath(h.Name)
	if err != nil {
		return m, false, err
	}
	m.Path, m.Mode = name, fs.FileMode(h.Mode)&fs.ModePerm //nolint:gosec // only nine bits are kept
	if h.Mode&0o6000 != 0 && h.Typeflag != tar.TypeSymlink {
		return m, false, refuse("%s is %s", h.Name, setID(h.Mode)).
			WithWant("ordinary permissions", modeText(h.Mode))
	}
	switch h.Typeflag {
	case tar.TypeReg, tar.TypeGNUSparse, tar.TypeCont:
		m.Type, m.Size = TypeFile, h.Size
	case tar.TypeDir:
		m.Type = TypeDir
	case tar.TypeSymlink:
		m.Type, m.Link, m.Mode = TypeLink, h.Linkname, 0o777
		if h.Linkname == "" {
			return m, false, refuse("link %s has no target", h.Name)
		}
	case tar.TypeLink:
		m.Type = TypeFile
		if m.hardlink, err = safePath(h.Linkname); err != nil {
			return m, false, err
		}
	default:
		return m, false, refuse("%s is a %s", h.Name, special(h.Typeflag)).
			WithWant("files, folders and links", special(h.Typeflag))
	}
	if name == "." {
		if m.Type != TypeDir {
			return m, false, refuse("the root of the archive is a %s", m.Type)
		}
		return m, true, nil
	}
	return m, false, nil
}

// safePath is the clean form of a name in a tar, which must stay below the
// folder in which it is unpacked.
func safePath(name string) (string, error) {
	switch {
	case name == "":
		return "", refuse("an entry has no name")
	case strings.HasPrefix(name, "/"):
		return "", refuse("%s has an absolute name", name).WithWant("a name inside the package", name)
	case strings.IndexFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }) >= 0:
		return "", refuse("a name holds control characters: %s", preview([]byte(name)))
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == ".." {
			return "", refuse("%s climbs out of the package with ..", name).WithWant("a name inside the package", name)
		}
	}
	return path.Clean(name), nil
}

func setID(mode int64) string {
	switch mode & 0o6000 {
	case 0o4000:
		return "set-uid"
	case 0o2000:
		return "set-gid"
	}
	return "set-uid and set-gid"
}

func modeText(mode int64) string {
	const octal = "01234567"
	return string([]byte{octal[mode>>9&7], octal[mode>>6&7], octal[mode>>3&7], octal[mode&7]})
}

func special(flag byte) string {
	switch flag {
	case tar.TypeChar:
		return "character device"
	case tar.TypeBlock:
		return "block device"
	case tar.TypeFifo:
		return "named pipe"
	}
	return "tar entry of type " + preview([]byte{flag})
}
