package imagefs

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/bzip2"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"

	"github.com/invar-ops/invar/internal/report"
)

// A layer is one layer and how its bytes are read.
type layer struct {
	digest v1.Hash // as stored; zero where nothing says it
	diffID v1.Hash // of the tar in it
	open   func(context.Context) (io.ReadCloser, error)
}

// each gives every entry of the layer to f, and checks both digests. What f has
// done is not undone when they are wrong: the caller throws it away.
func (l layer) each(ctx context.Context, step report.Step, f func(*tar.Header, io.Reader) error) error {
	blob, err := l.open(ctx)
	if err != nil {
		return err
	}
	defer blob.Close()
	stored, plain := sha256.New(), sha256.New()
	in := io.TeeReader(io.TeeReader(withContext{ctx, blob}, counter{step}), stored)
	r, _, err := decompress(in)
	if err != nil {
		return l.unreadable(ctx, err)
	}
	defer r.Close()
	content := io.TeeReader(r, plain)
	t := tar.NewReader(content)
	for {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return l.unreadable(ctx, err)
		}
		if err := f(h, t); err != nil {
			if _, ok := errors.AsType[readError](err); ok {
				return l.unreadable(ctx, err)
			}
			return err
		}
	}
	// What follows the last entry belongs to the digests.
	for _, rest := range []io.Reader{content, in} {
		if _, err := io.Copy(io.Discard, rest); err != nil {
			return l.unreadable(ctx, err)
		}
	}
	return l.verify(stored, plain)
}

func (l layer) verify(stored, plain hash.Hash) error {
	for _, s := range []struct {
		want v1.Hash
		got  hash.Hash
	}{{l.digest, stored}, {l.diffID, plain}} {
		if got := hex.EncodeToString(s.got.Sum(nil)); s.want.Hex != "" && got != s.want.Hex {
			return damaged("a layer is not what its digest says").WithWant(s.want.String(), "sha256:"+got)
		}
	}
	return nil
}

func (l layer) unreadable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if p, ok := errors.AsType[*report.Problem](err); ok {
		return p
	}
	return damaged("layer %.19s cannot be read: %w", firstOf(l.digest.Hex, l.diffID.Hex), err)
}

// A readError is a failure of the layer's own bytes, not of what is done with them.
type readError struct{ error }

func (e readError) Unwrap() error { return e.error }

// decompress undoes the compression that the first bytes show. Media types are
// often wrong about it.
func decompress(r io.Reader) (io.ReadCloser, bool, error) {
	b := bufio.NewReaderSize(r, 1<<16)
	head, err := b.Peek(6)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, false, err
	}
	switch {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		z, err := gzip.NewReader(b)
		return z, true, err
	case bytes.HasPrefix(head, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		z, err := zstd.NewReader(b)
		if err != nil {
			return nil, true, err
		}
		return z.IOReadCloser(), true, nil
	case bytes.HasPrefix(head, []byte("BZh")):
		return io.NopCloser(bzip2.NewReader(b)), true, nil
	case bytes.HasPrefix(head, []byte("\xfd7zXZ\x00")):
		z, err := xz.NewReader(b)
		return io.NopCloser(z), true, err
	}
	return io.NopCloser(b), false, nil
}

// withContext ends a long read with its context.
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

type counter struct{ step report.Step }

func (c counter) Write(p []byte) (int, error) {
	c.step.Add(int64(len(p)))
	return len(p), nil
}
