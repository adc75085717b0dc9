package wheel

import (
	"archive/zip"
	"bytes"
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

// Limits keep a hostile archive from filling the disk. Real torch extensions
// stay far below.
const (
	maxMembers = 100_000
	maxBytes   = 8 << 30
	maxRatio   = 1100 // deflate cannot do better than about 1032
	maxRecord  = 64 << 20
)

// An Archive is a wheel that is open for reading. Its member list has been
// checked, its contents not yet: Extract and Verify do that.
type Archive struct {
	Path     string
	Name     string // distribution as in METADATA
	Version  string
	Tags     []string // simple tags from WHEEL
	Pure     bool
	DistInfo string  // "batch_invariant_ops-1.0.0.dist-info"
	Record   []Entry // RECORD as written

	zip   *zip.ReadCloser
	files map[string]*zip.File
}

// Open reads the directory of the wheel at file and checks every name. A file
// name that ends in .whl has to agree with the metadata inside; another name
// (a store object) is not looked at.
func Open(file string) (*Archive, error) {
	z, err := zip.OpenReader(file)
	if err != nil {
		return nil, report.Problemf(report.Failed, "%s: %w", file, err).
			WithWant("a wheel (zip archive)", "something else, or a truncated file")
	}
	a := &Archive{Path: file, zip: z, files: map[string]*zip.File{}}
	err = errors.Join(a.index())
	if err == nil {
		err = a.readMetadata()
	}
	if err != nil {
		_ = z.Close()
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return a, nil
}

// Close closes the file.
func (a *Archive) Close() error { return a.zip.Close() }

// index checks the member list and finds the dist-info folder.
func (a *Archive) index() error {
	if len(a.zip.File) > maxMembers {
		return fmt.Errorf("%d members; at most %d are unpacked", len(a.zip.File), maxMembers)
	}
	var total uint64
	for _, f := range a.zip.File {
		if err := checkMember(f); err != nil {
			return fmt.Errorf("member %q: %w", f.Name, err)
		}
		if total += f.UncompressedSize64; total > maxBytes {
			return fmt.Errorf("more than %d bytes unpacked", int64(maxBytes))
		}
		if strings.HasSuffix(f.Name, "/") {
			continue
		}
		if _, dup := a.files[f.Name]; dup {
			return fmt.Errorf("member %q: it is there twice", f.Name)
		}
		a.files[f.Name] = f
		top, rest, _ := strings.Cut(f.Name, "/")
		if strings.HasSuffix(top, ".dist-info") && rest == "WHEEL" {
			if a.DistInfo != "" {
				return fmt.Errorf("two metadata folders: %s and %s", a.DistInfo, top)
			}
			a.DistInfo = top
		}
	}
	if a.DistInfo == "" {
		return errors.New("no *.dist-info/WHEEL in it")
	}
	return a.nested()
}

func checkMember(f *zip.File) error {
	if why := safeName(f.Name); why != "" {
		return errors.New(why)
	}
	mode := f.Mode()
	switch {
	case strings.HasSuffix(f.Name, "/"):
		return nil
	case !mode.IsRegular():
		return fmt.Errorf("want a plain file, got %s", mode.Type())
	case mode&(fs.ModeSetuid|fs.ModeSetgid) != 0:
		return errors.New("it is set-uid or set-gid")
	case f.Flags&1 != 0:
		return errors.New("it is encrypted")
	case f.UncompressedSize64 > 1<<20 && f.UncompressedSize64/(f.CompressedSize64+1) > maxRatio:
		return fmt.Errorf("%d bytes from %d: no compression does that", f.UncompressedSize64, f.CompressedSize64)
	}
	return nil
}

// nested refuses a name that is a file and a folder at once.
func (a *Archive) nested() error {
	for name := range a.files {
		for d := path.Dir(name); d != "."; d = path.Dir(d) {
			if _, ok := a.files[d]; ok {
				return fmt.Errorf("member %q is a file and a folder", d)
			}
		}
	}
	return nil
}

func (a *Archive) readMetadata() error {
	text := func(name string) (string, error) {
		f := a.files[a.DistInfo+"/"+name]
		if f == nil {
			return "", fmt.Errorf("no %s/%s in it", a.DistInfo, name)
		}
		b, err := readAll(f)
		return string(b), err
	}
	meta, err := text("METADATA")
	if err != nil {
		return err
	}
	a.Name, a.Version = field(meta, "Name"), field(meta, "Version")
	w, err := text("WHEEL")
	if err != nil {
		return err
	}
	if v := field(w, "Wheel-Version"); !strings.HasPrefix(v, "1.") {
		return fmt.Errorf("want Wheel-Version 1.x, got %q", v)
	}
	a.Tags, a.Pure = fields(w, "Tag"), field(w, "Root-Is-Purelib") == "true"
	rec, err := text("RECORD")
	if err != nil {
		return err
	}
	if a.Record, err = ParseRecord([]byte(rec)); err != nil {
		return err
	}
	return errors.Join(a.checkNames(), a.checkRecord())
}

// checkNames compares file name, metadata folder and metadata.
func (a *Archive) checkNames() error {
	info := strings.TrimSuffix(a.DistInfo, ".dist-info")
	name, version, _ := strings.Cut(info, "-")
	if escape(name) != escape(a.Name) || version != a.Version {
		return fmt.Errorf("folder %s does not belong to %s %s in its METADATA", a.DistInfo, a.Name, a.Version)
	}
	if !strings.HasSuffix(a.Path, ".whl") {
		return nil
	}
	n, err := ParseName(a.Path)
	if err != nil {
		return err
	}
	if escape(n.Distribution) != escape(a.Name) || n.Version != a.Version {
		return fmt.Errorf("file name says %s %s, METADATA says %s %s", n.Distribution, n.Version, a.Name, a.Version)
	}
	return nil
}

// checkRecord compares the member list with RECORD, names only.
func (a *Archive) checkRecord() error {
	self := a.DistInfo + "/RECORD"
	unsigned := map[string]bool{self: true, self + ".jws": true, self + ".p7s": true}
	listed := map[string]bool{}
	var errs []error
	for _, e := range a.Record {
		switch {
		case listed[e.Path]:
			errs = append(errs, fmt.Errorf("RECORD lists %s twice", e.Path))
		case a.files[e.Path] == nil && !unsigned[e.Path]:
			errs = append(errs, fmt.Errorf("%s is in RECORD but not in the wheel", e.Path))
		case e.Digest == "" && !unsigned[e.Path]:
			errs = append(errs, fmt.Errorf("%s has no digest in RECORD", e.Path))
		}
		listed[e.Path] = true
	}
	for name := range a.files {
		if !listed[name] && !unsigned[name] {
			errs = append(errs, fmt.Errorf("%s is in the wheel but not in RECORD", name))
		}
	}
	return errors.Join(errs...)
}

// field is the first value of a header field; names are without case.
func field(text, key string) string {
	if all := fields(text, key); len(all) > 0 {
		return all[0]
	}
	return ""
}

func fields(text, key string) []string {
	var out []string
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		if line == "" {
			break // the body follows
		}
		if k, v, ok := strings.Cut(line, ":"); ok && strings.EqualFold(k, key) {
			out = append(out, strings.TrimSpace(v))
		}
	}
	return out
}

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
