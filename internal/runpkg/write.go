package runpkg

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/invar-ops/invar/internal/report"
)

// A Spec says what to pack.
type Spec struct {
	// Manifest needs Name, Version and Platform; Write fills in Schema and Files.
	Manifest Manifest
	Tree     fs.FS // the files, such as os.DirFS(dir)
	Codec    Codec // Gzip when empty
}

// A Result describes a package that was written.
type Result struct {
	Path     string   `json:"path"`
	Size     int64    `json:"size"`
	SHA256   string   `json:"sha256"` // of the whole file
	Payload  int64    `json:"payload_size"`
	Unpacked int64    `json:"unpacked_size"` // bytes in files
	Manifest Manifest `json:"manifest"`
}

// Write packs spec.Tree into the run package at path. The bytes depend on the
// spec alone: not on the machine, the folder, the umask, times or owners. The
// package appears at path when it is complete, or not at all. Memory stays
// the same whatever the size of the tree.
func Write(ctx context.Context, path string, spec Spec) (Result, error) {
	r, err := write(ctx, path, spec)
	if err != nil {
		return Result{}, fmt.Errorf("pack %s: %w", path, err)
	}
	return r, nil
}

func write(ctx context.Context, path string, spec Spec) (r Result, err error) {
	m := spec.Manifest
	m.Schema = ManifestSchema
	if err := checkIdentity(&m); err != nil {
		return r, err
	}
	if m.Files, err = collect(ctx, spec.Tree); err != nil {
		return r, err
	}
	if len(m.Files) == 0 {
		return r, report.Problemf(report.Failed, "nothing to pack").WithWant("a folder with files", "an empty folder")
	}
	// The file list changes its digests only; every length is known here.
	r.Unpacked = blankDigests(m.Files)
	h := header{manifest: &m, codec: spec.Codec, unpacked: diskSpace(m.Files)}
	if h.codec == "" {
		h.codec = Gzip
	}
	if err := h.reserve(); err != nil {
		return r, err
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*.tmp")
	if err != nil {
		return r, err
	}
	defer func() {
		if err != nil {
			_ = f.Close()
			_ = os.Remove(f.Name())
		}
	}()
	d, err := writePayload(ctx, f, &h, spec.Tree)
	if err != nil {
		return r, err
	}
	text, err := h.final(d)
	if err != nil {
		return r, err
	}
	if err := publish(f, text, path); err != nil {
		return r, err
	}
	r.Path, r.Size, r.Payload, r.Manifest = path, h.size+d.size, d.size, m
	r.SHA256, err = fileDigest(ctx, path)
	return r, err
}

// blankDigests gives each file a digest of the right length and adds up sizes.
func blankDigests(files []Entry) (total int64) {
	for i := range files {
		if files[i].Type == TypeFile {
			files[i].SHA256 = widest.sha256
			total += files[i].Size
		}
	}
	return total
}

// diskSpace counts whole blocks of 4 KiB, as most file systems do.
func diskSpace(files []Entry) (n int64) {
	const block = 4096
	for _, e := range files {
		n += (e.Size+block-1)/block*block + block/8 // and an inode
	}
	return n
}

// publish puts the header in front and the file in place. It does not wait
// for the disk: after a power cut the digests tell, and a build can be
// repeated. A store that keeps packages syncs what it takes in.
func publish(f *os.File, head []byte, path string) error {
	_, err := f.WriteAt(head, 0)
	if err := errors.Join(err, f.Chmod(0o755)); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// writePayload streams the tree behind the room for the header, and fills in
// the digests of the files on the way.
func writePayload(ctx context.Context, f *os.File, h *header, tree fs.FS) (d digests, err error) {
	if _, err := f.Seek(h.size, io.SeekStart); err != nil {
		return d, err
	}
	sum, crc := sha256.New(), &cksum{}
	out := &counter{w: io.MultiWriter(f, sum, crc)}
	z, err := h.codec.writer(out)
	if err != nil {
		return d, err
	}
	err = writeTar(ctx, z, h.manifest.Files, tree)
	// Close in any case: it stops the workers.
	if err := errors.Join(err, z.Close()); err != nil {
		return d, err
	}
	return digests{size: out.n, crc: crc.sum(), sha256: hexSum(sum)}, nil
}

func writeTar(ctx context.Context, w io.Writer, files []Entry, tree fs.FS) error {
	t := tar.NewWriter(w)
	buf := make([]byte, 256<<10)
	for i := range files {
		if err := writeEntry(ctx, t, &files[i], tree, buf); err != nil {
			return err
		}
	}
	return t.Close()
}

func writeEntry(ctx context.Context, t *tar.Writer, e *Entry, tree fs.FS, buf []byte) error {
	hd := &tar.Header{Name: e.Path, Mode: int64(e.Mode.Perm()), Size: e.Size, Typeflag: tar.TypeReg}
	switch e.Type {
	case TypeDir:
		hd.Name, hd.Typeflag = e.Path+"/", tar.TypeDir
	case TypeLink:
		hd.Linkname, hd.Typeflag = e.Link, tar.TypeSymlink
	}
	// ustar where it can hold the name, else GNU: busybox tar knows no pax.
	hd.Format = tar.FormatUSTAR
	if !ustarFits(hd) {
		hd.Format = tar.FormatGNU
	}
	if err := t.WriteHeader(hd); err != nil {
		return fmt.Errorf("%s: %w", e.Path, err)
	}
	if e.Type != TypeFile {
		return nil
	}
	in, err := tree.Open(e.Path)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	sum := sha256.New()
	n, err := copyBuffer(ctx, io.MultiWriter(t, sum), in, buf)
	switch {
	case errors.Is(err, tar.ErrWriteTooLong), err == nil && n != e.Size:
		return report.Problemf(report.Failed, "%s changed while it was packed", e.Path).
			WithWant(fmt.Sprintf("%d bytes", e.Size), "another size").WithHint("run again when nothing writes to it")
	case err != nil:
		return fmt.Errorf("%s: %w", e.Path, err)
	}
	e.SHA256 = hexSum(sum)
	return nil
}

// ustarFits errs on the side of GNU, which holds everything.
func ustarFits(h *tar.Header) bool {
	const name, eightGiB = 100, 1 << 33
	ascii := strings.IndexFunc(h.Name+h.Linkname, func(r rune) bool { return r >= 0x80 }) < 0
	return ascii && len(h.Name) <= name && len(h.Linkname) <= name && h.Size < eightGiB
}

// copyBuffer is io.CopyBuffer that stops when ctx ends.
func copyBuffer(ctx context.Context, w io.Writer, r io.Reader, buf []byte) (n int64, err error) {
	for {
		if ctx.Err() != nil {
			return n, context.Cause(ctx)
		}
		k, err := r.Read(buf)
		if k > 0 {
			if _, err := w.Write(buf[:k]); err != nil {
				return n, err
			}
			n += int64(k)
		}
		if err == io.EOF {
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
}

func fileDigest(ctx context.Context, path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	sum := sha256.New()
	_, err = copyBuffer(ctx, sum, f, make([]byte, 1<<20))
	return hexSum(sum), err
}

func hexSum(h hash.Hash) string { return hex.EncodeToString(h.Sum(nil)) }

type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}
