// Package extwheel builds the wheel of stage 2 from the sources that its
// publisher releases: a zip or a tree. It unpacks by the same rules as run
// packages, builds in a scratch folder with the Python that will use the wheel,
// and checks what came out.
package extwheel

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/invar-ops/invar/internal/report"
)

// Limits of an archive of sources; the released one has some dozen files.
const (
	maxFiles = 20_000
	maxBytes = 1 << 30
	maxRatio = 200
)

// Unzip unpacks the sources in file into the new folder dir. A name that leads
// out of it, a link, a device, a name twice, a wrong checksum and an archive
// that unpacks to far more than it is are refused, and nothing is left.
func Unzip(ctx context.Context, file, dir string) (err error) {
	z, err := zip.OpenReader(file)
	if err != nil {
		return notZip(file, err)
	}
	defer z.Close()
	if err := bounds(file, &z.Reader); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}()
	for _, f := range z.File {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := member(f, dir); err != nil {
			return report.Problemf(report.Unmet, "%s: %w", filepath.Base(file), err).
				WithHint("the archive is damaged or made to do harm: fetch it again, from its publisher")
		}
	}
	return nil
}

func notZip(file string, err error) error {
	head := make([]byte, 16)
	got := err.Error()
	if f, ferr := os.Open(file); ferr == nil {
		n, _ := io.ReadFull(f, head)
		_ = f.Close()
		if n > 0 && !strings.HasPrefix(string(head[:n]), "PK") {
			got = fmt.Sprintf("a file that starts with %q", head[:n])
		}
	}
	return report.Problemf(report.Unmet, "%s is no zip archive that is whole: %w", filepath.Base(file), err).
		WithWant("the sources of the wheel as a zip", got).WithHint("fetch it again, or name a tree with --extension DIR")
}

func bounds(file string, z *zip.Reader) error {
	if len(z.File) > maxFiles {
		return report.Problemf(report.Unmet, "%s holds %d files", filepath.Base(file), len(z.File)).WithWant(fmt.Sprintf("at most %d", maxFiles), fmt.Sprint(len(z.File)))
	}
	var packed, bytes uint64
	for _, f := range z.File {
		packed, bytes = packed+f.CompressedSize64, bytes+f.UncompressedSize64
		if bytes > maxBytes {
			break
		}
	}
	if bytes > maxBytes || bytes > 1<<20 && bytes > maxRatio*packed {
		return report.Problemf(report.Unmet, "%s unpacks to far more than it is", filepath.Base(file)).
			WithWant("sources", fmt.Sprintf("%d bytes from %d", bytes, packed))
	}
	return nil
}

// member unpacks one file. The checksum is compared by the reader at its end.
func member(f *zip.File, dir string) error {
	name := strings.TrimSuffix(f.Name, "/")
	if name == "" || !filepath.IsLocal(filepath.FromSlash(name)) || path.Clean(name) != name || strings.ContainsAny(name, "\\\x00") {
		return fmt.Errorf("the name %q leads out of the folder", f.Name)
	}
	to := filepath.Join(dir, filepath.FromSlash(name))
	mode := f.Mode()
	switch {
	case mode.IsDir():
		return os.MkdirAll(to, 0o755)
	case !mode.IsRegular():
		return fmt.Errorf("%s is a %s", f.Name, mode.Type())
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	in, err := f.Open()
	if err != nil {
		return fmt.Errorf("%s: %w", f.Name, err)
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644|mode.Perm()&0o111)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s is in it twice", f.Name)
	}
	if err != nil {
		return err
	}
	n, err := io.Copy(out, io.LimitReader(in, int64(f.UncompressedSize64)+1))
	if err == nil && uint64(n) != f.UncompressedSize64 {
		err = fmt.Errorf("%d bytes, want %d", n, f.UncompressedSize64)
	}
	if err = errors.Join(err, out.Close()); err != nil {
		return fmt.Errorf("%s: %w", f.Name, err)
	}
	return nil
}
