package imagefs

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/invar-ops/invar/internal/report"
)

// maxDocument bounds manifests and configurations, in bytes. Registries allow 4 MiB.
const maxDocument = 16 << 20

// An archive is a set of files: a folder, or a tar that is read in place, so
// that it needs no room of its own.
type archive struct {
	dir   *os.Root
	file  *os.File
	parts map[string]part
}

// A part is a file in a tar. Older docker save writes layers that it has
// already as links.
type part struct {
	at, size int64
	link     string
}

func (i *Image) openArchive(ctx context.Context, name string) (*archive, error) {
	st, err := os.Stat(name)
	if err != nil {
		return nil, report.Usagef("--image: %w", err)
	}
	if st.IsDir() {
		root, err := os.OpenRoot(name)
		if err != nil {
			return nil, err
		}
		i.close = append(i.close, func() { _ = root.Close() })
		return &archive{dir: root}, nil
	}
	if !st.Mode().IsRegular() {
		return nil, notImage(name, "a device, a pipe or a socket")
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	i.close = append(i.close, func() { _ = f.Close() })
	if f, err = i.plain(ctx, f); err != nil {
		return nil, err
	}
	a := &archive{file: f, parts: map[string]part{}}
	return a, a.list(name)
}

// plain is f without its compression: a compressed archive cannot be read in
// place and goes into a temporary file.
func (i *Image) plain(ctx context.Context, f *os.File) (*os.File, error) {
	r, packed, err := decompress(withContext{ctx, f})
	if err != nil {
		return nil, damaged("%s: %w", i.Ref, err)
	}
	defer r.Close()
	if !packed {
		_, err := f.Seek(0, io.SeekStart)
		return f, err
	}
	tmp, err := os.CreateTemp(i.scratch, "invar-image-*.tar")
	if err != nil {
		return nil, err
	}
	i.close = append(i.close, func() { _ = tmp.Close() })
	if err := os.Remove(tmp.Name()); err != nil { // it goes when it is closed, however we end
		return nil, err
	}
	b, err := roomFor(i.scratch, 0)
	if err != nil {
		return nil, err
	}
	if _, err := io.Copy(b.writer(tmp), r); err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, explain("%s cannot be unpacked: %w", i.Ref, err)
	}
	_, err = tmp.Seek(0, io.SeekStart)
	return tmp, err
}

// list notes where each file of the tar begins. tar.Reader reads nothing ahead,
// so after Next the file stands at the content.
func (a *archive) list(name string) error {
	t := tar.NewReader(a.file)
	for {
		h, err := t.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil && len(a.parts) == 0:
			return notImage(name, "a file that is no tar")
		case errors.Is(err, tar.ErrHeader) || errors.Is(err, io.ErrUnexpectedEOF):
			return damaged("%s: %w", name, errors.Join(io.ErrUnexpectedEOF, err))
		case err != nil:
			return fmt.Errorf("%s: %w", name, err)
		}
		at, err := a.file.Seek(0, io.SeekCurrent)
		if err != nil {
			return err
		}
		p := part{at: at, size: h.Size}
		entry := path.Clean(h.Name)
		switch h.Typeflag {
		case tar.TypeSymlink:
			p.link = path.Join(path.Dir(entry), h.Linkname)
		case tar.TypeLink:
			p.link = path.Clean(h.Linkname)
		case tar.TypeReg:
		default:
			continue
		}
		a.parts[entry] = p
	}
}

func (a *archive) kind(folder, file string) string {
	if a.dir != nil {
		return folder
	}
	return file
}

func (a *archive) has(name string) bool {
	if a.dir != nil {
		_, err := a.dir.Stat(name)
		return err == nil
	}
	_, ok := a.parts[name]
	return ok
}

// some names what is there instead, for people.
func (a *archive) some() string {
	var names []string
	if a.dir != nil {
		if d, err := a.dir.Open("."); err == nil {
			names, _ = d.Readdirnames(64)
			_ = d.Close()
		}
	}
	for n := range a.parts {
		top, _, _ := strings.Cut(n, "/")
		if !slices.Contains(names, top) {
			names = append(names, top)
		}
	}
	slices.Sort(names)
	if len(names) > 6 {
		names = append(names[:6], "...")
	}
	if len(names) == 0 {
		return "nothing"
	}
	return strings.Join(names, ", ")
}

// open opens a file and tells its size.
func (a *archive) open(name string) (io.ReadCloser, int64, error) {
	if a.dir != nil {
		f, err := a.dir.Open(name)
		if err != nil {
			return nil, 0, missing(name, err)
		}
		st, err := f.Stat()
		if err == nil && !st.Mode().IsRegular() {
			err = damaged("%s is no file", name)
		}
		if err != nil {
			_ = f.Close()
			return nil, 0, err
		}
		return f, st.Size(), nil
	}
	for range 8 {
		p, ok := a.parts[name]
		if !ok {
			return nil, 0, missing(name, os.ErrNotExist)
		}
		if p.link == "" {
			return io.NopCloser(io.NewSectionReader(a.file, p.at, p.size)), p.size, nil
		}
		name = p.link
	}
	return nil, 0, damaged("%s leads from link to link", name)
}

func missing(name string, err error) error {
	return damaged("the image names %s: %w", name, err).WithWant("that file in it", "none")
}

func (a *archive) read(name string) ([]byte, error) {
	r, size, err := a.open(name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	if size > maxDocument {
		return nil, damaged("%s has %d bytes, which no manifest has", name, size)
	}
	return io.ReadAll(r)
}
