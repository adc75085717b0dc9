package runpkg

import (
	"io"
	"os"

	"github.com/invar-ops/invar/internal/report"
)

// A Kind of package, told from its header.
type Kind string

// Huawei's header is makeself's with other options and other ways to hand
// arguments to the script; the payload is read in the same way.
const (
	KindInvar    Kind = "invar"
	KindMakeself Kind = "makeself"
	KindHuawei   Kind = "makeself-huawei"
)

// A Payload is one compressed tar inside a package. makeself --append adds
// further ones; they unpack over each other in order.
type Payload struct {
	Offset int64  `json:"offset"`
	Size   int64  `json:"size"`
	Codec  Codec  `json:"codec"`
	CRC    string `json:"crc,omitempty"`    // as POSIX cksum prints it; empty when the header has none
	MD5    string `json:"md5,omitempty"`    // hex
	SHA256 string `json:"sha256,omitempty"` // hex
}

// A Package is a run package whose header was read. Nothing of it was run,
// and nothing of what the header says is believed before Verify or Extract
// has checked it.
type Package struct {
	Path       string    `json:"path"`
	Size       int64     `json:"size"`
	Kind       Kind      `json:"kind"`
	Makeself   string    `json:"makeself,omitempty"` // version, "2.4.5"
	Label      string    `json:"label"`
	Script     string    `json:"script,omitempty"` // what it would run after unpacking
	ScriptArgs string    `json:"script_args,omitempty"`
	TargetDir  string    `json:"target_dir,omitempty"`
	Codec      Codec     `json:"codec"` // of the first payload
	Header     int64     `json:"header_size"`
	Lines      int       `json:"header_lines"`
	Payloads   []Payload `json:"payloads"`
	Signed     bool      `json:"signed,omitempty"` // holds a GPG signature; invar does not check it
	Manifest   *Manifest `json:"manifest,omitempty"`

	src    io.ReaderAt
	closer io.Closer
}

// Open reads the header of the run package at path. The caller closes the
// Package. The error says what the file is when it is no run package.
func Open(path string) (*Package, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, report.Problemf(report.Failed, "run package: %w", err).
			WithHint("%s", "those that invar made lie under their digest in store/ of the prefix; invar status names them")
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = report.Problemf(report.Failed, "%s is not a run package", path).
			WithWant("a regular file", info.Mode().Type().String())
	}
	var p *Package
	if err == nil {
		p, err = OpenReader(path, f, info.Size())
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	p.closer = f
	return p, nil
}

// OpenReader is Open for anything that can be read at an offset. name is what
// errors call it.
func OpenReader(name string, src io.ReaderAt, size int64) (*Package, error) {
	p := &Package{Path: name, Size: size, src: src}
	if err := p.readHeader(); err != nil {
		return nil, err
	}
	return p, nil
}

// Close closes the file that Open opened.
func (p *Package) Close() error {
	if p.closer == nil {
		return nil
	}
	return p.closer.Close()
}
