package deflate

import (
	"encoding/binary"
	"math/bits"
	"slices"
)

// lengthCode maps length-3 to the code above 257; lengthBase and lengthBits
// are the tables of RFC 1951, computed.
var (
	lengthCode [256]uint8
	lengthBase [29]uint16
	lengthBits [29]uint8
	distBase   [30]uint32
	distBits   [30]uint8
)

func init() {
	base := 0
	for c := range 28 {
		if c >= 8 {
			lengthBits[c] = uint8(c/4 - 1) //nolint:gosec // at most 5
		}
		lengthBase[c] = uint16(base) //nolint:gosec // at most 255
		for i := base; i < min(base+1<<lengthBits[c], 255); i++ {
			lengthCode[i] = uint8(c) //nolint:gosec // at most 27
		}
		base += 1 << lengthBits[c]
	}
	lengthCode[255], lengthBase[28] = 28, 255 // 258 has a code of its own
	base = 0
	for c := range 30 {
		if c >= 4 {
			distBits[c] = uint8(c/2 - 1) //nolint:gosec // at most 13
		}
		distBase[c] = uint32(base) //nolint:gosec // at most 24576
		base += 1 << distBits[c]
	}
}

// distCode is the code for distance-1.
func distCode(d uint32) int {
	if d < 4 {
		return int(d)
	}
	n := bits.Len32(d) - 1
	return 2*n + int(d>>(n-1)&1)
}

// A bitWriter collects bits, lowest first.
type bitWriter struct {
	buf []byte
	acc uint64
	n   uint
}

// put writes up to 32 bits.
func (w *bitWriter) put(v uint64, n uint8) {
	w.acc |= v << w.n
	w.n += uint(n)
	if w.n >= 32 {
		w.buf = binary.LittleEndian.AppendUint32(w.buf, uint32(w.acc)) //nolint:gosec // the low half
		w.acc >>= 32
		w.n -= 32
	}
}

// bytes writes the whole bytes that it holds.
func (w *bitWriter) bytes() {
	for ; w.n >= 8; w.n -= 8 {
		w.buf = append(w.buf, byte(w.acc))
		w.acc >>= 8
	}
}

func (w *bitWriter) align() {
	for w.n > 0 {
		w.buf = append(w.buf, byte(w.acc))
		w.acc >>= 8
		w.n -= min(w.n, 8)
	}
	w.acc = 0
}

// end closes the block for joining: an empty stored block ends on a byte.
func (w *bitWriter) end(last bool) {
	final := uint64(0)
	if last {
		final = 1
	}
	w.put(final, 3)
	w.align()
	w.buf = append(w.buf, 0, 0, 0xff, 0xff)
}

// emit writes the tokens, which stand for raw, in the cheaper of two ways.
func (e *Encoder) emit(raw []byte) {
	e.lit.freq[eob] = 1
	e.lit.build(maxLit, 15)
	e.dist.build(maxDist, 15)
	head := e.codeLengths()
	cost := head.cost + e.lit.bits(maxLit) + e.dist.bits(maxDist)
	for c, n := range lengthBits {
		cost += int(e.lit.freq[257+c]) * int(n)
	}
	for c, n := range distBits {
		cost += int(e.dist.freq[c]) * int(n)
	}
	if cost >= (len(raw)+5)*8 {
		e.store(raw)
		return
	}
	head.write(&e.out)
	e.out.bytes()
	e.out.buf = e.write(e.out.buf)
	e.out.put(uint64(e.lit.code[eob]), e.lit.size[eob])
}

// write appends the tokens to buf. The bits that fill no byte stay in e.out.
func (e *Encoder) write(buf []byte) []byte {
	const most = 6 // bytes of one token: at most 7 + 15 + 5 + 15 + 13 bits
	at := len(buf)
	buf = slices.Grow(buf, most*len(e.tokens)+8)
	buf = buf[:cap(buf)]
	acc, n := e.out.acc, e.out.n
	for _, t := range e.tokens {
		if t < isMatch {
			acc |= uint64(e.lit.code[t]) << (n & 63)
			n += uint(e.lit.size[t])
		} else {
			length, d := t>>15&255, t&(Window-1)
			c := lengthCode[length]
			acc |= uint64(e.lit.code[257+int(c)]) << (n & 63)
			n += uint(e.lit.size[257+int(c)])
			acc |= uint64(uint16(length)-lengthBase[c]) << (n & 63)
			n += uint(lengthBits[c])
			k := distCode(d)
			acc |= uint64(e.dist.code[k]) << (n & 63)
			n += uint(e.dist.size[k])
			acc |= uint64(d-distBase[k]) << (n & 63)
			n += uint(distBits[k])
		}
		binary.LittleEndian.PutUint64(buf[at:], acc)
		at += int(n >> 3) //nolint:gosec // at most 7
		acc >>= n &^ 7 & 63
		n &= 7
	}
	e.out.acc, e.out.n = acc, n
	return buf[:at]
}

// store writes raw uncompressed, in pieces of at most 65535 bytes.
func (e *Encoder) store(raw []byte) {
	for len(raw) > 0 {
		n := min(len(raw), 65535)
		e.out.put(0, 3)
		e.out.align()
		e.out.buf = append(e.out.buf, byte(n), byte(n>>8), ^byte(n), ^byte(n>>8))
		e.out.buf = append(e.out.buf, raw[:n]...)
		raw = raw[n:]
	}
}

// A blockHead is the description of both codes in front of a block.
type blockHead struct {
	lit, dist int // how many lengths of each are written
	codes     table
	ops       []uint16 // symbol, and its extra value above bit 8
	used      int      // how many lengths of codes are written
	cost      int      // bits
}

// order is how RFC 1951 lists the lengths of the code for lengths.
var order = [maxCode]uint8{16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15}

// extra bits of the symbols 16, 17 and 18.
var repeatBits = [maxCode]uint8{16: 2, 17: 3, 18: 7}

func (e *Encoder) codeLengths() *blockHead {
	h := &blockHead{lit: maxLit, dist: maxDist}
	for h.lit > 257 && e.lit.size[h.lit-1] == 0 {
		h.lit--
	}
	for h.dist > 1 && e.dist.size[h.dist-1] == 0 {
		h.dist--
	}
	all := append(append(make([]uint8, 0, maxLit+maxDist), e.lit.size[:h.lit]...), e.dist.size[:h.dist]...)
	for i := 0; i < len(all); {
		run := i + 1
		for run < len(all) && all[run] == all[i] {
			run++
		}
		h.run(all[i], run-i)
		i = run
	}
	h.codes.build(maxCode, 7)
	h.used = maxCode
	for h.used > 4 && h.codes.size[order[h.used-1]] == 0 {
		h.used--
	}
	h.cost = 3 + 14 + 3*h.used + h.codes.bits(maxCode)
	for s, n := range repeatBits {
		h.cost += int(h.codes.freq[s]) * int(n)
	}
	return h
}

// run encodes n equal lengths.
func (h *blockHead) run(v uint8, n int) {
	if v != 0 {
		h.add(int(v), 0)
		n--
	}
	for n > 0 {
		switch {
		case v == 0 && n >= 11:
			k := min(n, 138)
			h.add(18, k-11)
			n -= k
		case v == 0 && n >= 3:
			h.add(17, n-3)
			n = 0
		case v != 0 && n >= 3:
			k := min(n, 6)
			h.add(16, k-3)
			n -= k
		default:
			h.add(int(v), 0)
			n--
		}
	}
}

func (h *blockHead) add(symbol, extra int) {
	h.codes.freq[symbol]++
	h.ops = append(h.ops, uint16(symbol|extra<<8)) //nolint:gosec // at most 127 and 18
}

func (h *blockHead) write(w *bitWriter) {
	w.put(0b100, 3) // not the last, dynamic codes
	w.put(uint64(h.lit-257), 5)
	w.put(uint64(h.dist-1), 5)
	w.put(uint64(h.used-4), 4)
	for _, s := range order[:h.used] {
		w.put(uint64(h.codes.size[s]), 3)
	}
	for _, op := range h.ops {
		s := op & 255
		w.put(uint64(h.codes.code[s]), h.codes.size[s])
		w.put(uint64(op>>8), repeatBits[s])
	}
}
