package wheel

import (
	"archive/zip"
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/invar-ops/invar/internal/report"
)

func readAll(f *zip.File) ([]byte, error) {
	r, err := f.Open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	b, err := io.ReadAll(io.LimitReader(r, maxRecord+1))
	if len(b) > maxRecord {
		return nil, fmt.Errorf("%s: larger than %d bytes", f.Name, maxRecord)
	}
	return b, err
}

// Verify reads every member and compares it with RECORD.
func (a *Archive) Verify(ctx context.Context) error {
	for _, e := range a.Record {
		if err := a.copy(ctx, e, io.Discard); err != nil {
			return err
		}
	}
	return nil
}

// copy writes one member to w and checks digest and size.
func (a *Archive) copy(ctx context.Context, e Entry, w io.Writer) error {
	f := a.files[e.Path]
	if f == nil || e.Digest == "" {
		return nil // RECORD itself and its signatures
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	sum, err := newDigest(e.Digest)
	if err != nil {
		return fmt.Errorf("%s: %w", e.Path, err)
	}
	r, err := f.Open()
	if err != nil {
		return fmt.Errorf("%s: %w", e.Path, err)
	}
	defer r.Close()
	n, err := io.Copy(io.MultiWriter(w, sum), r)
	if err != nil {
		return fmt.Errorf("%s: %w", e.Path, err)
	}
	if got := digestText(sum.Sum(nil)); got != strings.TrimRight(e.Digest, "=") || (e.Size >= 0 && n != e.Size) {
		return report.Problemf(report.Failed, "%s in %s is not what RECORD says", e.Path, filepath.Base(a.Path)).
			WithWant(fmt.Sprintf("%s, %d bytes", e.Digest, e.Size), fmt.Sprintf("%s, %d bytes", got, n))
	}
	return nil
}

// Extract unpacks the wheel into the folder dir as an installer does: digests
// are checked, INSTALLER and a new RECORD are written. It returns the names of
// the files, relative to dir. Files are not synced: the caller does.
func (a *Archive) Extract(ctx context.Context, dir string) ([]string, error) {
	var names []string
	var entries []Entry
	for _, e := range a.Record {
		f := a.files[e.Path]
		if f == nil || e.Digest == "" {
			continue
		}
		to, err := a.place(e.Path)
		if err != nil {
			return nil, err
		}
		mode := fs.FileMode(0o644)
		if f.Mode()&0o100 != 0 {
			mode = 0o755
		}
		if err := a.extractFile(ctx, e, filepath.Join(dir, to), mode); err != nil {
			return nil, err
		}
		e.Path = to
		names, entries = append(names, to), append(entries, e)
	}
	installer := []byte("invar\n")
	more, err := writeExtra(dir, a.DistInfo, installer, entries)
	return append(names, more...), err
}

func writeExtra(dir, info string, installer []byte, entries []Entry) ([]string, error) {
	sum, err := newDigest("sha256=")
	if err != nil {
		return nil, err
	}
	sum.Write(installer)
	name, record := info+"/INSTALLER", info+"/RECORD"
	entries = append(entries, Entry{name, digestText(sum.Sum(nil)), int64(len(installer))})
	if err := createFile(filepath.Join(dir, name), 0o644, bytes.NewReader(installer)); err != nil {
		return nil, err
	}
	return []string{name, record}, createFile(filepath.Join(dir, record), 0o644, bytes.NewReader(formatRecord(entries, record)))
}

// place maps a member to its place in a site directory. Only purelib and
// platlib of a .data folder have one there.
func (a *Archive) place(name string) (string, error) {
	rest, ok := strings.CutPrefix(name, strings.TrimSuffix(a.DistInfo, ".dist-info")+".data/")
	if !ok {
		return name, nil
	}
	kind, rest, _ := strings.Cut(rest, "/")
	if kind == "purelib" || kind == "platlib" {
		return rest, nil
	}
	return "", report.Problemf(report.Failed, "%s: %s has no place in a generation", filepath.Base(a.Path), name).
		WithWant("a wheel with packages only", "files for "+kind).
		WithHint("install this wheel with pip; invar installs operator packages")
}

func (a *Archive) extractFile(ctx context.Context, e Entry, to string, mode fs.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Chmod(mode); err != nil { // whatever the umask
		return err
	}
	if err := a.copy(ctx, e, f); err != nil {
		return err
	}
	return f.Close()
}

func createFile(name string, mode fs.FileMode, r io.Reader) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := io.Copy(f, r); err != nil {
		return err
	}
	if err := f.Chmod(mode); err != nil {
		return err
	}
	return f.Close()
}
