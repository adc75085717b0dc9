package runpkg

import "io"

// A readAhead runs a decoder in its own goroutine, so that inflating goes on
// while what came out is hashed and written.
type readAhead struct {
	full    chan []byte
	empty   chan []byte
	stop    chan struct{}
	current []byte
	whole   []byte // the buffer that current is a part of
	err     error  // what the decoder ended with; read it when full is closed
}

func newReadAhead(r io.Reader) *readAhead {
	const buffers = 8
	a := &readAhead{full: make(chan []byte, buffers), empty: make(chan []byte, buffers), stop: make(chan struct{})}
	for range buffers {
		a.empty <- make([]byte, chunkSize)
	}
	go a.fill(r)
	return a
}

func (a *readAhead) fill(r io.Reader) {
	defer close(a.full)
	for {
		var buf []byte
		select {
		case <-a.stop:
			return
		case buf = <-a.empty:
		}
		buf = buf[:chunkSize]
		n := 0
		var err error
		for n < chunkSize && err == nil {
			var k int
			k, err = r.Read(buf[n:])
			n += k
		}
		if n > 0 {
			a.full <- buf[:n] // as much room as there are buffers
		}
		if err != nil {
			a.err = err
			return
		}
	}
}

func (a *readAhead) Read(p []byte) (int, error) {
	if len(a.current) == 0 {
		if a.whole != nil {
			a.empty <- a.whole
			a.whole = nil
		}
		buf, ok := <-a.full
		if !ok {
			return 0, a.err
		}
		a.current, a.whole = buf, buf
	}
	n := copy(p, a.current)
	a.current = a.current[n:]
	return n, nil
}

// close ends the goroutine; the decoder below may still be in one Read.
func (a *readAhead) close() {
	close(a.stop)
	for range a.full { //nolint:revive // drained so that fill sees stop
	}
}
