package runpkg

import (
	"encoding/binary"
	"hash/crc32"
	"io"
	"runtime"

	"github.com/invar-ops/invar/internal/runpkg/deflate"
)

// The bytes of a package depend on these and on package deflate: changing them
// changes every package, but any gzip reads them.
const (
	blockSize = 512 << 10      // compressed on its own, by whichever worker is free
	history   = deflate.Window // what a block may refer back to
)

// A gzipWriter makes one ordinary gzip member with several workers. The input
// is cut at fixed places and each block sees only the end of the one before,
// so the output does not depend on the number of workers or on write sizes.
type gzipWriter struct {
	out     io.Writer
	crc     uint32
	size    uint32 // modulo 2^32, as the trailer wants it
	current *block
	jobs    chan *block
	ordered chan *block
	free    chan *block
	done    chan error
}

type block struct {
	data  []byte // history, then what is to be compressed
	from  int    // where the history ends
	last  bool
	out   []byte
	ready chan struct{}
}

func newGzipWriter(out io.Writer) *gzipWriter {
	// Eight workers keep memory below 30 MiB and outrun any disk.
	workers := min(runtime.GOMAXPROCS(0), 8)
	depth := 2 * workers
	w := &gzipWriter{
		out: out, jobs: make(chan *block, depth), ordered: make(chan *block, depth),
		free: make(chan *block, depth+1), done: make(chan error, 1),
	}
	for range depth + 1 {
		w.free <- &block{data: make([]byte, 0, history+blockSize), ready: make(chan struct{}, 1)}
	}
	w.current = w.take(nil)
	for range workers {
		go w.compress()
	}
	go w.flush()
	return w
}

// take waits for a free block and gives it the end of previous as its history.
func (w *gzipWriter) take(previous []byte) *block {
	b := <-w.free
	b.data = append(b.data[:0], previous[max(0, len(previous)-history):]...)
	b.from = len(b.data)
	return b
}

// Write hands full blocks to the workers. An error of the output shows in Close.
func (w *gzipWriter) Write(p []byte) (int, error) {
	w.crc = crc32.Update(w.crc, crc32.IEEETable, p)
	w.size += uint32(len(p)) //nolint:gosec // the trailer holds the size modulo 2^32
	n := len(p)
	for len(p) > 0 {
		b := w.current
		if len(b.data)-b.from == blockSize {
			w.current = w.take(b.data)
			w.send(b)
			continue
		}
		k := min(len(p), blockSize-(len(b.data)-b.from))
		b.data = append(b.data, p[:k]...)
		p = p[k:]
	}
	return n, nil
}

func (w *gzipWriter) send(b *block) {
	w.ordered <- b
	w.jobs <- b
}

// Close writes what is left and the trailer, and stops the workers.
func (w *gzipWriter) Close() error {
	w.current.last = true
	w.send(w.current)
	close(w.jobs)
	close(w.ordered)
	if err := <-w.done; err != nil {
		return err
	}
	var trailer [8]byte
	binary.LittleEndian.PutUint32(trailer[:4], w.crc)
	binary.LittleEndian.PutUint32(trailer[4:], w.size)
	_, err := w.out.Write(trailer[:])
	return err
}

func (w *gzipWriter) compress() {
	var z deflate.Encoder
	for b := range w.jobs {
		b.out = z.Block(b.out[:0], b.data, b.from, b.last)
		b.ready <- struct{}{}
	}
}

// flush writes the blocks in their order. After an error it only drains, so
// that Write never blocks.
func (w *gzipWriter) flush() {
	// No name, no time, unknown system: nothing of the machine shows.
	_, err := w.out.Write([]byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255})
	for b := range w.ordered {
		<-b.ready
		if err == nil {
			_, err = w.out.Write(b.out)
		}
		w.free <- b
	}
	w.done <- err
}
