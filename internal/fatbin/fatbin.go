// Package fatbin reads what fatbinary writes: machine code and text for several
// GPU architectures in one file, alone or in the section .nv_fatbin of a library.
// It starts no process, so a package can be checked where there is no toolkit.
package fatbin

import (
	"crypto/sha256"
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
)

// Section is where a library holds its fatbins.
const Section = ".nv_fatbin"

// Kinds of image.
const (
	ELF = "elf" // machine code, a cubin
	PTX = "ptx" // text that a driver compiles
)

// An Image is one piece of code for one architecture.
type Image struct {
	Kind       string `json:"kind"`
	Arch       string `json:"arch"` // "sm_90a", "compute_90"
	SHA256     string `json:"sha256"`
	Data       []byte `json:"-"`
	Compressed bool   `json:"compressed,omitempty"` // Data is as it was stored
}

// The layout is that of the fatbinaries of CUDA 11 to 13: a header, then
// entries with a header of their own. Measured with fatbinary 13.2.86.
const (
	magic      = 0xBA55ED50
	headSize   = 16
	entrySize  = 64 // what every entry header has at least
	flagA      = 1 << 20
	flagF      = 1 << 21
	compressed = 1<<13 | 1<<15 // LZ4, Zstandard
)

// Parse reads the fatbins in b: several may follow each other with zeros between.
func Parse(b []byte) ([][]Image, error) {
	var out [][]Image
	for len(b) > 0 {
		if b[0] == 0 { // padding up to the next one
			b = b[1:]
			continue
		}
		if len(b) < headSize || binary.LittleEndian.Uint32(b) != magic {
			return nil, errors.New("no fatbin: the magic number is missing")
		}
		head, size := uint64(binary.LittleEndian.Uint16(b[6:])), binary.LittleEndian.Uint64(b[8:])
		if head < headSize || head > uint64(len(b)) || size > uint64(len(b))-head {
			return nil, fmt.Errorf("the fatbin says %d bytes, %d are there", size, len(b))
		}
		images, err := entries(b[head : head+size])
		if err != nil {
			return nil, err
		}
		out, b = append(out, images), b[head+size:]
	}
	return out, nil
}

func entries(b []byte) ([]Image, error) {
	var out []Image
	for len(b) > 0 {
		if len(b) < entrySize {
			return nil, fmt.Errorf("%d bytes behind the last image", len(b))
		}
		kind, head := binary.LittleEndian.Uint16(b), uint64(binary.LittleEndian.Uint32(b[4:]))
		size := binary.LittleEndian.Uint64(b[8:])
		if head < entrySize || head > uint64(len(b)) || size > uint64(len(b))-head {
			return nil, errors.New("an image is longer than the fatbin")
		}
		flags := binary.LittleEndian.Uint64(b[40:])
		i := Image{Compressed: flags&compressed != 0, Data: b[head : head+size]}
		suffix := map[uint64]string{flagA: "a", flagF: "f"}[flags&(flagA|flagF)]
		number := binary.LittleEndian.Uint32(b[28:])
		switch kind {
		case 1:
			i.Kind, i.Arch = PTX, fmt.Sprintf("compute_%d%s", number, suffix)
		case 2:
			i.Kind, i.Arch = ELF, fmt.Sprintf("sm_%d%s", number, suffix)
		default:
			return nil, fmt.Errorf("an image of the unknown kind %d", kind)
		}
		sum := sha256.Sum256(i.Data)
		i.SHA256 = hex.EncodeToString(sum[:])
		out, b = append(out, i), b[head+size:]
	}
	return out, nil
}

// InLibrary reads the fatbins of a shared library, in the order of the link.
func InLibrary(path string) ([][]Image, error) {
	f, err := elf.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	s := f.Section(Section)
	if s == nil {
		return nil, fmt.Errorf("%s has no section %s: it holds no GPU code", path, Section)
	}
	b, err := s.Data()
	if err != nil {
		return nil, fmt.Errorf("%s: section %s: %w", path, Section, err)
	}
	all, err := Parse(b)
	if err != nil {
		return nil, fmt.Errorf("%s: section %s: %w", path, Section, err)
	}
	return all, nil
}
