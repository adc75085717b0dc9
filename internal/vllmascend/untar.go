package vllmascend

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/store"
)

// maxSource bounds what a source distribution may unpack to; the released ones
// have 60 MB.
const maxSource = 2 << 30

// untar unpacks a source distribution, whose one folder becomes dir. Names and
// links that lead out of it are refused, and nothing is left then.
func untar(ctx context.Context, file, dir string) (err error) {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return report.Problemf(report.Failed, "%s is no source distribution: %w", filepath.Base(file), err)
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return store.Explain(err, filepath.Dir(dir))
	}
	defer func() {
		if err != nil {
			err = errors.Join(report.Problemf(report.Failed, "%s: %w", filepath.Base(file), err), os.RemoveAll(dir))
		}
	}()
	root, err := os.OpenRoot(dir) // refuses whatever leads out of it, links included
	if err != nil {
		return err
	}
	defer root.Close()
	left := int64(maxSource)
	for t := tar.NewReader(z); ; {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			return err
		}
		if left -= h.Size; left < 0 {
			return fmt.Errorf("it unpacks to more than %d bytes", int64(maxSource))
		}
		if err := put(root, h, t); err != nil {
			return err
		}
	}
}

func put(root *os.Root, h *tar.Header, r io.Reader) error {
	_, name, _ := strings.Cut(strings.TrimPrefix(h.Name, "./"), "/")
	if name = strings.TrimSuffix(name, "/"); name == "" {
		return nil
	}
	if !filepath.IsLocal(name) {
		return fmt.Errorf("the name %q leads out of it", h.Name)
	}
	switch h.Typeflag {
	case tar.TypeDir:
		return root.MkdirAll(name, 0o755)
	case tar.TypeSymlink:
		if !filepath.IsLocal(filepath.Join(filepath.Dir(name), h.Linkname)) || filepath.IsAbs(h.Linkname) {
			return fmt.Errorf("the link %q leads out of it", h.Name)
		}
		return root.Symlink(h.Linkname, name)
	case tar.TypeReg:
	default:
		return nil // global headers and the like
	}
	if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644|os.FileMode(h.Mode)&0o111)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	return errors.Join(err, f.Close())
}
