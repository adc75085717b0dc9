// Package elffile reads what a dynamic loader needs to know about an ELF file:
// architecture, needed libraries, search paths, symbol versions and dynamic
// symbols. It resolves needed libraries by the loader's rules below a root
// directory. It never loads or runs the file.
package elffile

import (
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A File is the dynamic part of one ELF file.
type File struct {
	Path    string // as opened; "" for a reader
	Arch    string // as uname -m: "x86_64", "aarch64"; "machine-<n>" when unknown
	Kind    string // "shared", "executable", "other"
	Interp  string // program interpreter, executables only
	Soname  string
	Needed  []string  // in the order of the file
	Rpath   []string  // DT_RPATH, split, $ORIGIN not yet expanded
	Runpath []string  // DT_RUNPATH, likewise
	Wants   []Version // needed symbol versions, sorted
	Exports []Symbol  // defined, visible dynamic symbols, sorted by name
	Imports []Symbol  // undefined dynamic symbols, sorted by name

	class   elf.Class
	machine elf.Machine
}

// A Version is a symbol version that the file needs from one of its libraries.
type Version struct {
	Library string // "libc.so.6"
	Name    string // "GLIBC_2.17"
}

// A Symbol is one dynamic symbol.
type Symbol struct {
	Name    string
	Version string // "" without versioning
	Library string // the library that an import is bound to, "" when unversioned
	Weak    bool
}

// ErrNotELF says that a file is not ELF at all.
var ErrNotELF = errors.New("not an ELF file")

// arches maps e_machine to the names that uname and wheel tags use.
// Byte order tells ppc64 from ppc64le.
var arches = map[elf.Machine]string{
	elf.EM_X86_64: "x86_64", elf.EM_AARCH64: "aarch64", elf.EM_386: "i686",
	elf.EM_ARM: "armv7l", elf.EM_RISCV: "riscv64", elf.EM_S390: "s390x",
	elf.EM_PPC64: "ppc64", elf.EM_LOONGARCH: "loongarch64",
}

// Read opens path and reads its dynamic part.
func Read(path string) (*File, error) { return open(path, true) }

// open leaves the symbols out where nobody looks at them: libc and libstdc++
// have thousands.
func open(path string, symbols bool) (*File, error) {
	// Opening a pipe would wait for a writer.
	if st, err := os.Stat(path); err != nil {
		return nil, err
	} else if !st.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	r, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	f, err := readFrom(r, symbols)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	f.Path = path
	return f, nil
}

// ReadFrom reads the dynamic part of the ELF file in r.
func ReadFrom(r io.ReaderAt) (*File, error) { return readFrom(r, true) }

func readFrom(r io.ReaderAt, symbols bool) (f *File, err error) {
	var magic [4]byte
	if n, _ := r.ReadAt(magic[:], 0); n < 4 || string(magic[:]) != elf.ELFMAG {
		return nil, ErrNotELF
	}
	// debug/elf is not hardened against every hostile file.
	defer func() {
		if p := recover(); p != nil {
			f, err = nil, fmt.Errorf("damaged ELF file: %v", p)
		}
	}()
	e, err := elf.NewFile(r)
	if err != nil {
		return nil, fmt.Errorf("damaged ELF file: %w", err)
	}
	defer e.Close()
	f = &File{Arch: archOf(e), Kind: kindOf(e), class: e.Class, machine: e.Machine, Interp: interpOf(e)}
	if err := f.readDynamic(e); err != nil {
		return nil, fmt.Errorf("damaged dynamic section: %w", err)
	}
	if err := f.readVersions(e); err != nil {
		return nil, fmt.Errorf("damaged symbol versions: %w", err)
	}
	if !symbols {
		return f, nil
	}
	if err := f.readSymbols(e); err != nil {
		return nil, fmt.Errorf("damaged dynamic symbols: %w", err)
	}
	return f, nil
}

func archOf(e *elf.File) string {
	name, ok := arches[e.Machine]
	switch {
	case !ok:
		return fmt.Sprintf("machine-%d", int(e.Machine))
	case e.Machine == elf.EM_PPC64 && e.Data == elf.ELFDATA2LSB:
		return "ppc64le"
	case e.Machine == elf.EM_RISCV && e.Class == elf.ELFCLASS32:
		return "riscv32"
	}
	return name
}

func kindOf(e *elf.File) string {
	switch e.Type {
	case elf.ET_DYN:
		return "shared"
	case elf.ET_EXEC:
		return "executable"
	}
	return "other"
}

func interpOf(e *elf.File) string {
	for _, p := range e.Progs {
		if p.Type == elf.PT_INTERP && p.Filesz < 4096 {
			b := make([]byte, p.Filesz)
			if _, err := p.ReadAt(b, 0); err == nil {
				return strings.TrimRight(string(b), "\x00")
			}
		}
	}
	return ""
}

func (f *File) readDynamic(e *elf.File) error {
	var err error
	if f.Needed, err = e.ImportedLibraries(); err != nil {
		return err
	}
	one := func(tag elf.DynTag) string {
		s, derr := e.DynString(tag)
		if derr != nil && err == nil {
			err = derr
		}
		return strings.Join(s, ":")
	}
	f.Soname = one(elf.DT_SONAME)
	f.Rpath, f.Runpath = splitPath(one(elf.DT_RPATH)), splitPath(one(elf.DT_RUNPATH))
	return err
}

func splitPath(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, ":")
}

func (f *File) readSymbols(e *elf.File) error {
	syms, err := e.DynamicSymbols()
	if errors.Is(err, elf.ErrNoSymbols) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, s := range syms {
		bind := elf.ST_BIND(s.Info)
		if s.Name == "" || bind == elf.STB_LOCAL {
			continue
		}
		sym := Symbol{Name: s.Name, Version: s.Version, Library: s.Library, Weak: bind == elf.STB_WEAK}
		vis := elf.ST_VISIBILITY(s.Other)
		switch {
		case s.Section == elf.SHN_UNDEF:
			f.Imports = append(f.Imports, sym)
		case vis == elf.STV_DEFAULT || vis == elf.STV_PROTECTED:
			f.Exports = append(f.Exports, sym)
		}
	}
	byName := func(a, b Symbol) int { return strings.Compare(a.Name, b.Name) }
	slices.SortStableFunc(f.Imports, byName)
	slices.SortStableFunc(f.Exports, byName)
	return nil
}

func (f *File) readVersions(e *elf.File) error {
	if e.SectionByType(elf.SHT_GNU_VERNEED) == nil {
		return nil // a library that needs no versioned one, such as one without libc
	}
	needs, err := e.DynamicVersionNeeds()
	if err != nil {
		return err
	}
	for _, n := range needs {
		for _, v := range n.Needs {
			f.Wants = append(f.Wants, Version{Library: n.Name, Name: v.Dep})
		}
	}
	slices.SortFunc(f.Wants, func(a, b Version) int {
		return strings.Compare(a.Library+"\x00"+a.Name, b.Library+"\x00"+b.Name)
	})
	return nil
}

// Exported reports whether the file defines the dynamic symbol name.
func (f *File) Exported(name string) bool {
	_, ok := slices.BinarySearchFunc(f.Exports, name, func(s Symbol, n string) int { return strings.Compare(s.Name, n) })
	return ok
}

// Musl reports whether the file is linked against musl instead of glibc.
func (f *File) Musl() bool {
	isMusl := func(n string) bool {
		b := filepath.Base(n)
		return strings.HasPrefix(b, "libc.musl-") || strings.HasPrefix(b, "ld-musl-") || b == "libc.so"
	}
	return slices.ContainsFunc(f.Needed, isMusl) || isMusl(f.Interp)
}

// maxConstants bounds what Constants reads of one section, in bytes.
const maxConstants = 64 << 20

// Constants is the content of the read-only data sections of the ELF file at
// path: the texts of a program are there, among them names it looks up.
func Constants(path string) (out []byte, err error) {
	f, err := elf.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() {
		_ = f.Close()
		if p := recover(); p != nil { // as in readFrom
			out, err = nil, fmt.Errorf("damaged ELF file: %v", p)
		}
	}()
	for _, s := range f.Sections {
		if !strings.HasPrefix(s.Name, ".rodata") || s.Type != elf.SHT_PROGBITS {
			continue
		}
		if s.Size > maxConstants {
			return nil, fmt.Errorf("%s: section %s of %d bytes", path, s.Name, s.Size)
		}
		b, err := s.Data()
		if err != nil {
			return nil, fmt.Errorf("%s: section %s: %w", path, s.Name, err)
		}
		out = append(append(out, b...), 0) // so that texts of two sections stay apart
	}
	return out, nil
}
