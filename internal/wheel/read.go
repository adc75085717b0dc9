package wheel

import (
	"archive/zip"
	"errors"
	"fmt"
	"io/fs"
	"path"
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
