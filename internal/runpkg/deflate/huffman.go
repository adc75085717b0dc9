package deflate

import (
	"math/bits"
	"slices"
)

const (
	maxLit  = 286
	maxDist = 30
	maxCode = 19
	eob     = 256
)

// A table is a Huffman code for one alphabet.
type table struct {
	freq [maxLit]uint32
	size [maxLit]uint8
	code [maxLit]uint16 // bits reversed, as deflate writes them
	sort []uint32       // frequency and symbol, kept for its memory
}

func (t *table) reset() { t.freq = [maxLit]uint32{} }

// build makes an optimal code of at most limit bits for the first n symbols.
// A code has two symbols at least, since some decoders refuse less.
func (t *table) build(n int, limit uint8) {
	t.size = [maxLit]uint8{}
	t.sort = t.sort[:0]
	for s := range n {
		if f := t.freq[s]; f > 0 {
			t.sort = append(t.sort, min(f, 1<<22)<<9|uint32(s)) //nolint:gosec // nine bits
		}
	}
	for s := uint32(0); len(t.sort) < 2; s++ {
		if t.freq[s] == 0 {
			t.sort = append(t.sort, 1<<9|s)
		}
	}
	slices.Sort(t.sort)
	count := lengths(t.sort, limit)
	// The rarest symbols, which come first, get the longest codes.
	i := 0
	for l := limit; l > 0; l-- {
		for range count[l] {
			t.size[t.sort[i]&511] = l
			i++
		}
	}
	t.assign(n, count)
}

// lengths computes how many codes of each length an optimal code has, by
// joining the two lightest trees until one is left; both queues stay sorted.
func lengths(leaves []uint32, limit uint8) (count [16]int) {
	n := len(leaves)
	weight := make([]uint64, 2*n-1)
	up := make([]int, 2*n-1)
	for i, l := range leaves {
		weight[i] = uint64(l >> 9)
	}
	leaf, inner := 0, n
	take := func(end int) int {
		if leaf < n && (inner >= end || weight[leaf] <= weight[inner]) {
			leaf++
			return leaf - 1
		}
		inner++
		return inner - 1
	}
	for i := n; i < 2*n-1; i++ {
		a := take(i)
		b := take(i)
		weight[i] = weight[a] + weight[b]
		up[a], up[b] = i, i
	}
	depth := make([]uint8, 2*n-1)
	for i := 2*n - 3; i >= 0; i-- {
		depth[i] = depth[up[i]] + 1
		if i < n {
			count[min(depth[i], limit)]++
		}
	}
	// Codes that were cut to the limit leave too little room: lengthen the
	// longest of the shorter ones until the sum is right again (Kraft).
	room := 0
	for l := 1; l <= int(limit); l++ {
		room += count[l] << (int(limit) - l)
	}
	for room > 1<<limit {
		count[limit]--
		for l := limit - 1; ; l-- {
			if count[l] > 0 {
				count[l]--
				count[l+1] += 2
				break
			}
		}
		room--
	}
	return count
}

func (t *table) assign(n int, count [16]int) {
	var next [16]uint16
	code := 0
	for l := 1; l < 16; l++ {
		code = (code + count[l-1]) << 1
		next[l] = uint16(code) //nolint:gosec // below 2^l
	}
	for s := range n {
		if l := t.size[s]; l > 0 {
			t.code[s] = bits.Reverse16(next[l]) >> (16 - l)
			next[l]++
		}
	}
}

// bits is what the symbols cost with this code, without their extra bits.
func (t *table) bits(n int) (total int) {
	for s := range n {
		total += int(t.freq[s]) * int(t.size[s])
	}
	return total
}
