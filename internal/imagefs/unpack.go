package imagefs

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/rootfs"
)

// An unpacking applies layers to a folder of its own. Entries are placed where
// the image's own links lead, inside the folder; os.Root refuses anything else.
type unpacking struct {
	img  *Image
	root *os.Root
	view rootfs.Root
	tree tree
	room *room
	at   int             // layer
	here map[string]bool // paths of this layer, which its own whiteouts spare
}

// Unpack makes the merged file system of the image in dir, as far as a probe
// reads it, and notes what should not have stayed in it.
func (i *Image) Unpack(ctx context.Context, dir string) error {
	var stored int64
	for _, l := range i.Layers {
		stored += l.Bytes
	}
	space, err := roomFor(dir, stored)
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	view, err := rootfs.Open(dir)
	if err != nil {
		return err
	}
	u := &unpacking{img: i, root: root, view: view, room: space, tree: tree{nodes: map[string]node{}}}
	for n, l := range i.layers {
		step := i.done.Start("image", fmt.Sprintf("layer %d of %d", n+1, len(i.layers)), max(i.Layers[n].Bytes, 1))
		u.at, u.here = n, map[string]bool{}
		if err := l.each(ctx, step, u.entry); err != nil {
			step.Fail(err)
			return err
		}
		i.Layers[n].Files = len(u.here)
		step.Done("")
	}
	i.Hidden, i.tree = u.tree.hidden, &u.tree
	return i.findLeftovers(&u.tree)
}

// Unreadable lists what below dir the user with these numbers may not read, by
// the modes in the layers.
func (i *Image) Unreadable(dir string, uid, gid int) []string {
	var out []string
	for p, n := range i.tree.nodes {
		if !strings.HasPrefix("/"+p+"/", strings.TrimSuffix(dir, "/")+"/") || n.kind == tar.TypeSymlink {
			continue
		}
		need := int64(0o4) // read
		if n.kind == tar.TypeDir {
			need = 0o5 // and enter
		}
		mode := n.mode
		switch {
		case uid == 0:
			continue
		case n.uid == uid:
			mode >>= 6
		case n.gid == gid:
			mode >>= 3
		}
		if mode&need != need {
			out = append(out, "/"+p)
		}
	}
	slices.Sort(out)
	return out
}

const (
	whiteout = ".wh."
	opaque   = ".wh..wh..opq"
)

// entry places one entry of a layer.
func (u *unpacking) entry(h *tar.Header, content io.Reader) error {
	name, err := safeName(h.Name)
	if err != nil {
		return err
	}
	if name == "" || h.Typeflag == tar.TypeXGlobalHeader { // the root itself; no file
		return nil
	}
	dir, err := u.resolve(path.Dir(name))
	if err != nil {
		return err
	}
	base := path.Base(name)
	p := path.Join(dir, base)
	switch {
	case base == opaque:
		return u.clear(dir)
	case strings.HasPrefix(base, whiteout):
		return u.take(path.Join(dir, strings.TrimPrefix(base, whiteout)))
	}
	u.here[p] = true
	return u.place(p, h, content)
}

// resolve is the folder that name means in the image so far, without links.
func (u *unpacking) resolve(name string) (string, error) {
	at, err := u.view.Resolve("/" + name)
	return strings.TrimPrefix(at, "/"), err
}

// take removes what a whiteout names: of lower layers only.
func (u *unpacking) take(p string) error {
	if err := u.clear(p); err != nil {
		return err
	}
	for q := range u.here {
		if q == p || strings.HasPrefix(q, p+"/") {
			return nil
		}
	}
	if _, ok := u.tree.nodes[p]; !ok {
		return nil
	}
	u.tree.remove(p, u.at)
	return u.root.RemoveAll(p)
}

// clear removes what lower layers have put into a folder.
func (u *unpacking) clear(dir string) error {
	for _, p := range u.tree.empty(dir, u.at) {
		if err := u.root.RemoveAll(p); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// enter notes n as what lies at p, takes away what lay there, and makes the
// folders above it.
func (u *unpacking) enter(p string, n node) error {
	replaced, err := u.tree.put(p, n)
	if err != nil {
		return err
	}
	if replaced {
		if err := u.root.RemoveAll(p); err != nil {
			return err
		}
	}
	return u.failed(p, u.parents(p))
}

func (u *unpacking) place(p string, h *tar.Header, content io.Reader) error {
	n := node{kind: h.Typeflag, size: h.Size, layer: u.at, mode: h.Mode, uid: h.Uid, gid: h.Gid}
	if h.Typeflag == tar.TypeLink {
		return u.link(p, h, n)
	}
	err := u.enter(p, n)
	if err != nil {
		return err
	}
	switch h.Typeflag {
	case tar.TypeDir:
		err = u.root.MkdirAll(p, 0o755)
	case tar.TypeSymlink:
		err = u.root.Symlink(h.Linkname, p)
	case tar.TypeReg:
		err = u.file(p, h, content)
	default:
		u.special(p, h)
	}
	return u.failed(p, err)
}

// parents makes the folders above p: a layer need not have entries for them.
func (u *unpacking) parents(p string) error {
	parent := path.Dir(p)
	if parent == "." {
		return nil
	}
	for at := parent; at != "."; at = path.Dir(at) {
		n, ok := u.tree.nodes[at]
		if ok && n.kind == tar.TypeDir {
			break
		}
		replaced, err := u.tree.put(at, node{kind: tar.TypeDir, layer: u.at, mode: 0o755})
		if err == nil && replaced {
			err = u.root.RemoveAll(at)
		}
		if err != nil {
			return err
		}
	}
	return u.root.MkdirAll(parent, 0o755)
}

// special notes what is never made: devices, pipes. Those below /dev are in
// every bare root and do no harm.
func (u *unpacking) special(p string, h *tar.Header) {
	if strings.HasPrefix(p, "dev/") {
		return
	}
	kind := map[byte]string{tar.TypeChar: "a device", tar.TypeBlock: "a device", tar.TypeFifo: "a pipe"}[h.Typeflag]
	u.img.Refused = append(u.img.Refused, fmt.Sprintf("/%s: %s", p, firstOf(kind, fmt.Sprintf("type %q", h.Typeflag))))
}

func (u *unpacking) file(p string, h *tar.Header, content io.Reader) error {
	need := needOf(p, h.Size)
	if need == nothing {
		return nil
	}
	n := u.tree.nodes[p]
	n.kept = true
	u.tree.nodes[p] = n
	f, err := u.root.OpenFile(p, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	if need == hole {
		err = f.Truncate(h.Size)
	} else {
		_, err = io.Copy(u.room.writer(f), source{content})
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

// link makes a hard link. Its target is a path of the image, and must be there.
func (u *unpacking) link(p string, h *tar.Header, n node) error {
	target, err := safeName(h.Linkname)
	if err != nil {
		return err
	}
	dir, err := u.resolve(path.Dir(target))
	if err != nil {
		return err
	}
	target = path.Join(dir, path.Base(target))
	to, ok := u.tree.nodes[target]
	if !ok {
		u.img.Refused = append(u.img.Refused, fmt.Sprintf("/%s: a hard link to /%s, which is not in the image", p, target))
		return nil
	}
	if target == p {
		return nil
	}
	n.kind, n.size, n.kept = to.kind, to.size, to.kept
	if err = u.enter(p, n); err != nil {
		return err
	}
	switch {
	case to.kind == tar.TypeSymlink || to.kept:
		err = u.root.Link(target, p)
	case needOf(p, to.size) != nothing: // its content was not kept under the first name
		var f *os.File
		if f, err = u.root.Create(p); err == nil {
			err = errors.Join(f.Truncate(to.size), f.Close())
		}
	}
	return u.failed(p, err)
}

// failed names the path of an error of the file system.
func (u *unpacking) failed(p string, err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*report.Problem](err); ok {
		return err
	}
	if _, ok := errors.AsType[readError](err); ok {
		return err
	}
	return explain("layer %d, /%s: %w", u.at+1, p, err)
}

// source marks errors of a layer's bytes, to tell them from those of the disk.
type source struct{ r io.Reader }

func (s source) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = readError{err}
	}
	return n, err
}

// Enters reports whether the user with these numbers may pass through a folder.
func (i *Image) Enters(dir string, uid, gid int) bool {
	n, ok := i.tree.nodes[strings.TrimPrefix(dir, "/")]
	switch {
	case !ok || uid == 0 || n.kind != tar.TypeDir: // a folder without an entry of its own is open to all
		return true
	case n.uid == uid:
		return n.mode&0o100 != 0
	case n.gid == gid:
		return n.mode&0o010 != 0
	}
	return n.mode&0o001 != 0
}
