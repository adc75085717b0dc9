package pins

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/invar-ops/invar/internal/data"
	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/store"
)

// LockName is the file name of a lock in a folder.
const LockName = "invar.lock"

// lockSchema counts incompatible changes of the lock.
const lockSchema = 1

const lockHead = `# Content that invar may use, by digest. Written by invar build --accept-digest;
# made to be committed: whoever has this file needs no --accept-digest.
`

// A Lock is the content that a team has accepted.
type Lock struct {
	Schema int      `yaml:"schema"`
	Files  []Locked `yaml:"files"`
}

// A Locked is one accepted file.
type Locked struct {
	Name   string `yaml:"name" json:"name"`
	SHA256 string `yaml:"sha256" json:"sha256"`
	Size   int64  `yaml:"size" json:"size"`
	From   string `yaml:"from" json:"from"` // where it came from when it was accepted
}

// ReadLock reads the lock at file; one that is not there is empty.
func ReadLock(file string) (Lock, error) {
	b, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return Lock{Schema: lockSchema}, nil
	}
	if err != nil {
		return Lock{}, err
	}
	var l Lock
	if err := data.Decode(file, b, &l); err != nil {
		return l, report.Problemf(report.Usage, "%w", err).WithHint("invar wrote a lock in another form; git checkout %s, or remove the file and accept the digests again", filepath.Base(file))
	}
	if err := l.check(); err != nil {
		return l, report.Problemf(report.Usage, "%s: %w", file, err).WithHint("git checkout %s, or remove the line and accept the digest again", filepath.Base(file))
	}
	return l, nil
}

func (l Lock) check() error {
	if l.Schema != lockSchema {
		return fmt.Errorf("schema %d, want %d", l.Schema, lockSchema)
	}
	for i, f := range l.Files {
		switch {
		case f.Name == "" || f.Name != filepath.Base(f.Name) || f.Size < 0:
			return fmt.Errorf("file %d: %q is no file name, or its size is negative", i+1, f.Name)
		case !digestRE.MatchString(f.SHA256):
			return fmt.Errorf("%s: %q is no SHA-256 in lower-case hex", f.Name, f.SHA256)
		case i > 0 && order(l.Files[i-1], f) >= 0:
			return fmt.Errorf("%s: files are sorted by name and digest, and none is there twice", f.Name)
		}
	}
	return nil
}

func order(a, b Locked) int {
	return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.SHA256, b.SHA256))
}

// Digests are the contents that the lock accepts under name.
func (l Lock) Digests(name string) []string {
	var out []string
	for _, f := range l.Files {
		if f.Name == name {
			out = append(out, f.SHA256)
		}
	}
	return out
}

// Has reports whether the content is accepted, under whatever name.
func (l Lock) Has(sum string) bool {
	return slices.ContainsFunc(l.Files, func(f Locked) bool { return f.SHA256 == sum })
}

// Add returns the lock with f in its place; changed is false when it was there.
func (l Lock) Add(f Locked) (out Lock, changed bool) {
	at, found := slices.BinarySearchFunc(l.Files, f, order)
	if found {
		return l, false
	}
	l.Schema, l.Files = lockSchema, slices.Insert(slices.Clone(l.Files), at, f)
	return l, true
}

// Write replaces the lock at file as a whole.
func (l Lock) Write(file string) error {
	var b bytes.Buffer
	b.WriteString(lockHead)
	// One file a line: such a lock merges well.
	fmt.Fprintf(&b, "schema: %d\nfiles:\n", lockSchema)
	for _, f := range l.Files {
		line, err := yaml.MarshalWithOptions(f, yaml.Flow(true))
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "  - %s\n", strings.TrimSpace(string(line)))
	}
	if err := store.WriteFile(file, b.Bytes(), 0o644); err != nil {
		return store.Explain(err, "lock file "+file)
	}
	return nil
}
