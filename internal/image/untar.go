package image

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// untar unpacks an OCI archive into dir: regular files and folders, nothing
// that leads out of it.
func untar(file, dir string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	t := tar.NewReader(f)
	for {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		switch h.Typeflag {
		case tar.TypeDir:
			err = root.MkdirAll(filepath.Clean(h.Name), 0o755)
		case tar.TypeReg:
			err = unpack(root, filepath.Clean(h.Name), t)
		default:
			err = fmt.Errorf("%s: %s has type %q, an image archive holds files and folders", file, h.Name, h.Typeflag)
		}
		if err != nil {
			return err
		}
	}
}

func unpack(root *os.Root, name string, from io.Reader) error {
	if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	out, err := root.Create(name)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, from); err != nil {
		_ = out.Close()
		return err
	}
	return out.Close()
}
