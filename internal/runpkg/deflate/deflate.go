// Package deflate compresses blocks of a gzip stream that several workers
// make at the same time. Each block is compressed on its own but may refer
// back into the 32 KiB before it, and its output depends on nothing else, so
// the joined stream is the same whatever the number of workers.
//
// It exists because run packages want the size of gzip -4 at a multiple of its
// speed, which lies between the levels that general libraries offer.
package deflate

import (
	"encoding/binary"
	"math/bits"
)

// Window is how far back a match may reach.
const Window = 32 << 10

const (
	minMatch = 3
	maxMatch = 258

	hashBits  = 16
	hash3Bits = 12
	near      = 4096 // beyond this three literals are cheaper than a match of three
	mask      = Window - 1

	// How hard it looks: candidates per position, and the length that is
	// good enough. Chosen by measuring shared libraries against gzip -4.
	maxChain  = 4
	niceMatch = 32
	lazyBelow = 16 // a match this long is taken without looking further

	maxTokens = 14_000 // per Huffman table
)

// An Encoder compresses blocks, one after the other. It may be used again for
// blocks of other streams; nothing of an earlier block shows in a later one.
type Encoder struct {
	head   [1 << hashBits]int32  // latest position by hash of four bytes
	head3  [1 << hash3Bits]int32 // and of three
	prev   [Window]int32
	tokens []uint32
	out    bitWriter
	lit    table
	dist   table
}

// Block appends data[from:] to dst as deflate blocks that end on a byte
// boundary, so that the next one can be joined. data[:from] is what came
// before. last marks the end of the stream.
func (e *Encoder) Block(dst, data []byte, from int, last bool) []byte {
	e.out = bitWriter{buf: dst}
	for i := range e.head {
		e.head[i] = -Window
	}
	for i := range e.head3 {
		e.head3[i] = -Window
	}
	for pos := max(0, from-Window); pos < from && pos+8 <= len(data); pos++ {
		e.insert(data, pos)
	}
	for start := from; start < len(data); {
		end := e.parse(data, start)
		e.emit(data[start:end])
		start = end
	}
	e.out.end(last)
	return e.out.buf
}

func hash(v uint32) uint32 { return v * 0x9E3779B1 >> (32 - hashBits) }

// insert makes pos a candidate and returns the latest one before it.
func (e *Encoder) insert(data []byte, pos int) int {
	h := hash(binary.LittleEndian.Uint32(data[pos:]))
	before := e.head[h]
	e.prev[pos&mask] = before
	e.head[h] = int32(pos) //nolint:gosec // a block is far below 2 GiB
	return int(before)
}

// insert3 makes pos a candidate for three bytes and returns the latest before it.
func (e *Encoder) insert3(data []byte, pos int) int {
	h := (binary.LittleEndian.Uint32(data[pos:]) << 8) * 0x9E3779B1 >> (32 - hash3Bits)
	before := e.head3[h]
	e.head3[h] = int32(pos) //nolint:gosec // as in insert
	return int(before)
}

// find3 says how far back cand is, 0 when it is too far or has other bytes.
func find3(data []byte, pos, cand int) int {
	if cand < 0 || pos-cand > near ||
		(binary.LittleEndian.Uint32(data[cand:])^binary.LittleEndian.Uint32(data[pos:]))<<8 != 0 {
		return 0
	}
	return pos - cand
}

// parse fills tokens from start on and returns where it stopped.
func (e *Encoder) parse(data []byte, start int) int {
	e.tokens = e.tokens[:0]
	e.lit.reset()
	e.dist.reset()
	pos, stop := start, len(data)-8
	for pos < stop && len(e.tokens) < maxTokens {
		n, d := 0, 0
		if cand := e.insert(data, pos); cand > pos-Window {
			n, d = e.find(data, pos, cand, 3, maxChain)
		}
		cand3 := e.insert3(data, pos)
		if n == 0 {
			if d = find3(data, pos, cand3); d > 0 {
				n = 3
			}
		}
		if n < minMatch {
			e.literal(data[pos])
			pos++
			continue
		}
		done := pos + 1 // up to where positions are in the tables
		// Lazy: a better match one byte later is worth a literal.
		for n < lazyBelow && pos+1 < stop {
			done = pos + 2
			n2, d2 := e.find(data, pos+1, e.insert(data, pos+1), max(n-1, 3), maxChain/2)
			if n2 == 0 || 4*(n2-n)+bits.Len(uint(d))-bits.Len(uint(d2)) <= 2 {
				break
			}
			e.literal(data[pos])
			pos++
			n, d = n2, d2
		}
		e.match(n, d)
		next := pos + n
		for i := done; i < min(next, stop); i++ {
			e.insert(data, i)
		}
		pos = next
	}
	if pos >= stop {
		for ; pos < len(data); pos++ {
			e.literal(data[pos])
		}
	}
	return pos
}

// find looks along the chain for a match longer than best.
func (e *Encoder) find(data []byte, pos, cand, best, depth int) (length, distance int) {
	limit := max(pos-Window, -1) // heads start below it
	room := min(maxMatch, len(data)-pos)
	if best >= room {
		return 0, 0
	}
	here := data[pos:]
	first := binary.LittleEndian.Uint32(here)
	tail := binary.LittleEndian.Uint32(here[best-3:])
	for ; cand > limit && depth > 0; depth-- {
		there := data[cand:]
		if binary.LittleEndian.Uint32(there[best-3:]) == tail && binary.LittleEndian.Uint32(there) == first {
			n := matchLength(there, here, room)
			if n > best {
				best, length, distance = n, n, pos-cand
				if n >= niceMatch || n >= room {
					break
				}
				tail = binary.LittleEndian.Uint32(here[best-3:])
			}
		}
		cand = int(e.prev[cand&mask]) // its slot is still its own: pos is less than Window away
	}
	return length, distance
}

func matchLength(a, b []byte, room int) int {
	n := 4
	b = b[:room]
	for ; n+8 <= len(b); n += 8 {
		if x := binary.LittleEndian.Uint64(a[n:]) ^ binary.LittleEndian.Uint64(b[n:]); x != 0 {
			return n + bits.TrailingZeros64(x)>>3
		}
	}
	for n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// A token is a literal byte, or a match: isMatch, length-3, distance-1.
const isMatch = 1 << 31

func (e *Encoder) literal(b byte) {
	e.tokens = append(e.tokens, uint32(b))
	e.lit.freq[b]++
}

func (e *Encoder) match(n, d int) {
	e.tokens = append(e.tokens, isMatch|uint32(n-3)<<15|uint32(d-1)) //nolint:gosec // at most 258 and 32768
	e.lit.freq[257+int(lengthCode[n-3])]++
	e.dist.freq[distCode(uint32(d-1))]++ //nolint:gosec // as above
}
