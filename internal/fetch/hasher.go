package fetch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
)

// A hasher digests on a second processor what is written on the first, so that
// the digest costs no time of the transfer. Its buffers are all it ever holds.
type hasher struct {
	h    hash.Hash
	work chan []byte
	free chan []byte
	done chan struct{}
}

// Eight buffers of 256 KiB keep disk, network and digest busy at 1 GB/s.
const (
	buffers    = 8
	bufferSize = 256 << 10
)

func newHasher() *hasher {
	h := &hasher{h: sha256.New(), work: make(chan []byte, buffers), free: make(chan []byte, buffers), done: make(chan struct{})}
	for range buffers {
		h.free <- make([]byte, bufferSize)
	}
	go func() {
		for b := range h.work {
			h.h.Write(b)
			h.free <- b[:bufferSize]
		}
		close(h.done)
	}()
	return h
}

// copy writes everything of r to w and digests it. look sees each piece first
// and may stop the copy. It returns the bytes written, and nil at the end of r.
func (h *hasher) copy(ctx context.Context, w io.Writer, r io.Reader, look func([]byte) error) (int64, error) {
	var n int64
	for ctx.Err() == nil {
		b := <-h.free
		k, err := io.ReadAtLeast(r, b, 512) // enough to tell what kind of file it is
		if errors.Is(err, io.ErrUnexpectedEOF) && k > 0 {
			// Either the end of r or a cut connection; the next read tells.
			err = nil
		}
		if k > 0 {
			if lerr := look(b[:k]); lerr != nil {
				h.free <- b
				return n, lerr
			}
			if _, werr := w.Write(b[:k]); werr != nil {
				h.free <- b
				return n, werr
			}
			n += int64(k)
			h.work <- b[:k]
		} else {
			h.free <- b
		}
		if errors.Is(err, io.EOF) {
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
	return n, context.Cause(ctx)
}

// sum ends the work and returns the digest in hex.
func (h *hasher) sum() string {
	h.close()
	return hex.EncodeToString(h.h.Sum(nil))
}

func (h *hasher) close() {
	select {
	case <-h.done:
	default:
		close(h.work)
		<-h.done
	}
}
