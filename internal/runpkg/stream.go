package runpkg

import (
	"context"
	"crypto/md5" //nolint:gosec // makeself's digest; compared because it is there, trusted for nothing
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/invar-ops/invar/internal/report"
)

const (
	chunkSize = 256 << 10
	chunks    = 16 // in flight: 4 MiB, enough to keep every consumer busy
)

// A stream reads a payload from the disk once. Whoever calls Read gets its
// bytes, and the digests that the header promises are computed on the side,
// each in its own goroutine.
type stream struct {
	payload  Payload
	progress func(int64)
	free     chan *chunk
	out      chan *chunk
	stop     chan struct{}
	current  *chunk
	err      error // of reading; read it when out is closed
	hashing  sync.WaitGroup
	sha, md5 hash.Hash
	crc      *cksum
}

type chunk struct {
	buf  [chunkSize]byte
	rest []byte // what the reader of the stream has not taken
	n    int
	refs atomic.Int32
}

func newStream(ctx context.Context, src io.ReaderAt, pl Payload, progress func(int64)) *stream {
	s := &stream{
		payload: pl, progress: progress,
		free: make(chan *chunk, chunks), out: make(chan *chunk, chunks), stop: make(chan struct{}),
	}
	for range chunks {
		s.free <- &chunk{}
	}
	var sides []chan *chunk
	side := func(w io.Writer) {
		ch := make(chan *chunk, chunks)
		sides = append(sides, ch)
		s.hashing.Go(func() {
			for c := range ch {
				_, _ = w.Write(c.buf[:c.n]) // a hash never fails
				s.release(c)
			}
		})
	}
	// SHA-256 always: it is the identity that a receipt or a report wants.
	s.sha = sha256.New()
	side(s.sha)
	if pl.MD5 != "" {
		s.md5 = md5.New() //nolint:gosec // see the import
		side(s.md5)
	}
	if pl.CRC != "" {
		s.crc = &cksum{}
		side(s.crc)
	}
	go s.fill(ctx, src, sides)
	return s
}

// fill reads the file and hands each chunk to everybody.
func (s *stream) fill(ctx context.Context, src io.ReaderAt, sides []chan *chunk) {
	defer func() {
		for _, ch := range sides {
			close(ch)
		}
		close(s.out)
	}()
	for at, left := s.payload.Offset, s.payload.Size; left > 0; {
		var c *chunk
		select {
		case <-ctx.Done():
			s.err = context.Cause(ctx)
			return
		case <-s.stop:
			return
		case c = <-s.free:
		}
		c.n = int(min(left, chunkSize))
		if n, err := src.ReadAt(c.buf[:c.n], at); n < c.n {
			s.err = fmt.Errorf("read at byte %d: %w", at+int64(n), noEOF(err))
			return
		}
		at, left = at+int64(c.n), left-int64(c.n)
		c.rest = c.buf[:c.n]
		c.refs.Store(int32(len(sides) + 1)) //nolint:gosec // at most four
		for _, ch := range sides {
			ch <- c // never blocks: as much room as there are chunks
		}
		s.out <- c
	}
}

// noEOF: the end of a payload is known, so an early end is no ordinary one.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

func (s *stream) release(c *chunk) {
	if c.refs.Add(-1) == 0 {
		s.free <- c
	}
}

// Read hands on the bytes of the payload.
func (s *stream) Read(p []byte) (int, error) {
	if s.current == nil {
		c, ok := <-s.out
		if !ok {
			if s.err != nil {
				return 0, s.err
			}
			return 0, io.EOF
		}
		s.current = c
		if s.progress != nil {
			s.progress(int64(c.n))
		}
	}
	n := copy(p, s.current.rest)
	s.current.rest = s.current.rest[n:]
	if len(s.current.rest) == 0 {
		s.release(s.current)
		s.current = nil
	}
	return n, nil
}

// finish reads what nobody took, so that the digests cover the whole payload.
func (s *stream) finish() error {
	buf := make([]byte, chunkSize)
	for {
		if _, err := s.Read(buf); err != nil {
			s.hashing.Wait()
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
	}
}

// abandon stops the goroutines of a stream that nobody wants to the end.
func (s *stream) abandon() {
	close(s.stop)
	for c := range s.out {
		s.release(c)
	}
	s.hashing.Wait()
}

// checks compares the digests with the header. Call it after finish.
func (s *stream) checks(what string) []report.Check {
	pl := s.payload
	var all []report.Check
	add := func(name, want, got string) {
		c := report.Check{Name: what + " " + name, Status: report.Pass, Want: want, Got: got}
		if want != got {
			c.Status = report.Fail
			c.Hint = "the file is damaged: download it again"
		}
		all = append(all, c)
	}
	if pl.SHA256 != "" {
		add("SHA-256", pl.SHA256, s.sha256())
	}
	if s.md5 != nil {
		add("MD5", pl.MD5, hex.EncodeToString(s.md5.Sum(nil)))
	}
	if s.crc != nil {
		add("CRC", trimZeros(pl.CRC), strconv.FormatUint(uint64(s.crc.sum()), 10))
	}
	if len(all) == 0 {
		all = append(all, report.Check{
			Name: what + " digest", Status: report.Unclear, Got: s.sha256(),
			Reason: "the header holds no digest to compare with",
		})
	}
	return all
}

func (s *stream) sha256() string { return hex.EncodeToString(s.sha.Sum(nil)) }

func trimZeros(n string) string {
	for len(n) > 1 && n[0] == '0' {
		n = n[1:]
	}
	return n
}
