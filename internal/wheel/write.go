package wheel

import (
	"archive/zip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A Layer is a file or a folder that goes into a wheel.
type Layer struct {
	FS   fs.FS
	From string // file or folder in FS; "." is all of it
	To   string // name in the wheel of the file, or of the folder; "." is the root
}

// A Built is a wheel that was written.
type Built struct {
	Path   string
	Name   string // base name
	SHA256 string // hex
	Size   int64
}

// epoch is the first time that a zip archive can hold.
var epoch = time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)

// member is one file of the wheel, read when its turn comes.
type member struct {
	name string
	open func() (io.ReadCloser, error)
	exec bool
}

// Write packs layers into a wheel of p with tag t in the folder dir and
// returns it. The file appears under its name when it is whole. Python's
// caches are left out; two layers that give one name are an error.
func Write(ctx context.Context, dir string, p Project, layers []Layer, t Tag) (Built, error) {
	if err := t.check(); err != nil {
		return Built{}, err
	}
	if err := p.check(); err != nil {
		return Built{}, err
	}
	members, err := collect(p, layers)
	if err != nil {
		return Built{}, err
	}
	name := FileName(p, t)
	out, err := os.CreateTemp(dir, "."+name+".*")
	if err != nil {
		return Built{}, err
	}
	defer os.Remove(out.Name()) // gone already when all went well
	defer out.Close()
	sum := sha256.New()
	if err := writeZip(ctx, io.MultiWriter(out, sum), p, members, t); err != nil {
		return Built{}, fmt.Errorf("%s: %w", name, err)
	}
	st, err := out.Stat()
	if err != nil {
		return Built{}, err
	}
	if err := finish(out, filepath.Join(dir, name)); err != nil {
		return Built{}, err
	}
	return Built{filepath.Join(dir, name), name, hex.EncodeToString(sum.Sum(nil)), st.Size()}, nil
}

// finish gives a temporary file its mode and its name.
func finish(f *os.File, name string) error {
	if err := f.Chmod(0o644); err != nil { // whatever the umask
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), name)
}

func collect(p Project, layers []Layer) ([]member, error) {
	all := map[string]member{}
	info := distInfo(p)
	for _, l := range layers {
		err := fs.WalkDir(l.FS, l.From, func(name string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if d.IsDir() {
				if d.Name() == "__pycache__" {
					return fs.SkipDir
				}
				return nil
			}
			return l.add(all, name, d, info)
		})
		if err != nil {
			return nil, err
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("no files for %s", p.Name)
	}
	out := make([]member, 0, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		out = append(out, all[name])
	}
	return out, nil
}

func (l Layer) add(all map[string]member, name string, d fs.DirEntry, info string) error {
	if strings.HasSuffix(name, ".pyc") {
		return nil
	}
	st, err := fs.Stat(l.FS, name) // follows links: a wheel holds files only
	if err != nil {
		return err
	}
	if !st.Mode().IsRegular() {
		return fmt.Errorf("%s: want a file, got %s", name, st.Mode().Type())
	}
	rel := strings.TrimPrefix(strings.TrimPrefix(name, path.Clean(l.From)), "/")
	if l.From == "." {
		rel = name
	}
	to := path.Join(l.To, rel)
	if why := safeName(to); why != "" {
		return fmt.Errorf("%s cannot be %q in a wheel: %s", name, to, why)
	}
	if to == info || strings.HasPrefix(to, info+"/") {
		return fmt.Errorf("%s: %s is written by invar", name, info)
	}
	if _, dup := all[to]; dup {
		return fmt.Errorf("%s: two files would be %q in the wheel", name, to)
	}
	all[to] = member{name: to, exec: runnable(to, st.Mode()), open: func() (io.ReadCloser, error) {
		return l.FS.Open(name)
	}}
	return nil
}

func writeZip(ctx context.Context, w io.Writer, p Project, members []member, t Tag) error {
	z := zip.NewWriter(w)
	entries := make([]Entry, 0, len(members)+4)
	for _, m := range members {
		e, err := writeMember(ctx, z, m)
		if err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
		entries = append(entries, e)
	}
	// PEP 427: metadata last, so that it can be changed without a rewrite.
	info := distInfo(p)
	meta := map[string][]byte{
		"METADATA": p.metadata(), "WHEEL": wheelFile(t, t.Platform == "any"), "entry_points.txt": p.entryPoints(),
	}
	for f, b := range p.LicenseFiles {
		meta["licenses/"+f] = b
	}
	for _, f := range slices.Sorted(maps.Keys(meta)) {
		if meta[f] == nil {
			continue
		}
		e, err := writeBytes(z, info+"/"+f, meta[f])
		if err != nil {
			return err
		}
		entries = append(entries, e)
	}
	record := info + "/RECORD"
	if _, err := writeBytes(z, record, formatRecord(entries, record)); err != nil {
		return err
	}
	return z.Close()
}

func header(name string, exec bool) *zip.FileHeader {
	h := &zip.FileHeader{Name: name, Method: zip.Deflate, Modified: epoch}
	h.SetMode(0o644)
	if exec {
		h.SetMode(0o755)
	}
	return h
}

func writeMember(ctx context.Context, z *zip.Writer, m member) (Entry, error) {
	if err := ctx.Err(); err != nil {
		return Entry{}, context.Cause(ctx)
	}
	r, err := m.open()
	if err != nil {
		return Entry{}, err
	}
	defer r.Close()
	return writeStream(z, header(m.name, m.exec), r)
}

func writeBytes(z *zip.Writer, name string, b []byte) (Entry, error) {
	return writeStream(z, header(name, false), strings.NewReader(string(b)))
}

func writeStream(z *zip.Writer, h *zip.FileHeader, r io.Reader) (Entry, error) {
	w, err := z.CreateHeader(h)
	if err != nil {
		return Entry{}, err
	}
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(w, sum), r)
	return Entry{Path: h.Name, Digest: digestText(sum.Sum(nil)), Size: n}, err
}

// runnable looks at the owner's bit only, and not for libraries: the loader
// does not need it, and compilers set it according to the umask.
func runnable(name string, mode fs.FileMode) bool {
	return mode&0o100 != 0 && !strings.HasSuffix(name, ".so")
}
