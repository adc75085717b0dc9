package runpkg

import (
	"encoding/binary"
	"hash/crc32"
	"math/bits"
)

// A cksum computes what the POSIX cksum utility prints. Its polynomial is
// that of IEEE CRC-32 but it feeds bits from the other end, so turning round
// the bits of each byte, of the state and of the result lets the carry-less
// multiplication of hash/crc32 do the work.
type cksum struct {
	state uint32 // bit-reversed
	n     uint64
	buf   [4096]byte
}

const (
	odd1 = 0x5555555555555555
	odd2 = 0x3333333333333333
	odd4 = 0x0f0f0f0f0f0f0f0f
)

// Write never fails.
func (c *cksum) Write(p []byte) (int, error) {
	c.n += uint64(len(p))
	c.feed(p)
	return len(p), nil
}

func (c *cksum) feed(p []byte) {
	for len(p) > 0 {
		n := min(len(p), len(c.buf))
		b := c.buf[:n]
		i := 0
		for ; i+8 <= n; i += 8 {
			x := binary.LittleEndian.Uint64(p[i:])
			x = x>>1&odd1 | x&odd1<<1
			x = x>>2&odd2 | x&odd2<<2
			x = x>>4&odd4 | x&odd4<<4
			binary.LittleEndian.PutUint64(b[i:], x)
		}
		for ; i < n; i++ {
			b[i] = bits.Reverse8(p[i])
		}
		// crc32.Update inverts before and after; cksum starts from zero.
		c.state = ^crc32.Update(^c.state, crc32.IEEETable, b)
		p = p[n:]
	}
}

// sum is the value for what was written so far. The length takes part, lowest
// byte first, without leading zero bytes.
func (c *cksum) sum() uint32 {
	end := cksum{state: c.state}
	for n := c.n; n > 0; n >>= 8 {
		end.feed([]byte{byte(n)})
	}
	return ^bits.Reverse32(end.state)
}
