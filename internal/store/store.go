// Package store keeps artifacts by the SHA-256 of their content, and records
// which build step made which artifact. Whatever it hands out has been
// verified: a truncated or changed file is removed and reported as missing, so
// that it is built again. It has the lock of a prefix, too. It knows nothing
// about what the artifacts are.
package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
)

// A Store is the folder store/ of a prefix. Writers hold the prefix's lock.
type Store struct{ dir string }

// An Object is one artifact in the store.
type Object struct {
	SHA256 string `json:"sha256"` // hex
	Size   int64  `json:"size"`
	Name   string `json:"name"` // base name that the file had; the store's own name is the digest
}

// Dir is the folder of the store below prefix.
func Dir(prefix string) string { return filepath.Join(prefix, "store") }

// Open makes the folders of the store below prefix.
func Open(prefix string) (*Store, error) {
	s := &Store{dir: Dir(prefix)}
	for _, d := range []string{"sha256", "actions", "tmp"} {
		if err := os.MkdirAll(filepath.Join(s.dir, d), 0o755); err != nil {
			return nil, Explain(err, "prefix "+prefix)
		}
	}
	return s, nil
}

// At is the store below prefix as it is, for readers: it creates nothing.
func At(prefix string) *Store { return &Store{dir: Dir(prefix)} }

var digestRE = regexp.MustCompile(`^[0-9a-f]{64}$`)

// Path is where the object with this digest lies, whether it is there or not.
func (s *Store) Path(digest string) string { return filepath.Join(s.dir, "sha256", digest) }

// A DamagedError says that a stored file was not what its name says. The file
// is gone by then.
type DamagedError struct{ Want, Got string }

func (e *DamagedError) Error() string {
	return fmt.Sprintf("stored file %.12s is damaged (its content is %.12s); it was removed", e.Want, e.Got)
}

// Put copies the file at path into the store. An object that is there already
// and whole is left alone; a damaged one is replaced.
func (s *Store) Put(ctx context.Context, path string) (Object, error) {
	in, err := os.Open(path)
	if err != nil {
		return Object{}, err
	}
	defer in.Close()
	tmp, err := os.CreateTemp(filepath.Join(s.dir, "tmp"), "put.*")
	if err != nil {
		return Object{}, Explain(err, s.dir)
	}
	defer os.Remove(tmp.Name()) // gone already when it was renamed
	defer tmp.Close()
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(tmp, sum), withContext{ctx, in})
	if err != nil {
		return Object{}, Explain(err, s.dir)
	}
	o := Object{SHA256: hex.EncodeToString(sum.Sum(nil)), Size: n, Name: filepath.Base(path)}
	if _, err := s.Verify(ctx, o.SHA256); err == nil {
		return o, nil
	}
	if err := tmp.Chmod(0o644); err != nil {
		return Object{}, err
	}
	if err := Commit(tmp, s.Path(o.SHA256)); err != nil {
		return Object{}, Explain(err, s.dir)
	}
	return o, nil
}

// Verify reads the object with this digest and gives its path. An object that
// is not there is fs.ErrNotExist; a damaged one is removed and a DamagedError.
func (s *Store) Verify(ctx context.Context, digest string) (string, error) {
	if !digestRE.MatchString(digest) {
		return "", fmt.Errorf("%q is no SHA-256 digest", digest)
	}
	path := s.Path(digest)
	got, _, err := Digest(ctx, path)
	if err != nil {
		return "", err
	}
	if got != digest {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		return "", &DamagedError{Want: digest, Got: got}
	}
	return path, nil
}

// DigestBytes is the SHA-256 of b in hex.
func DigestBytes(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// Digest is the SHA-256 in hex and the size of the file at path.
func Digest(ctx context.Context, path string) (string, int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	sum := sha256.New()
	n, err := io.Copy(sum, withContext{ctx, f})
	return hex.EncodeToString(sum.Sum(nil)), n, err
}

// withContext stops a long copy when the context ends.
type withContext struct {
	ctx context.Context //nolint:containedctx // lives as long as one copy
	r   io.Reader
}

func (r withContext) Read(p []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	return r.r.Read(p)
}
