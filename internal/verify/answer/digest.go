package answer

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"math"
)

// A Digest stands for an answer: equal digests are equal answers.
type Digest [16]byte

// Digest covers everything that must not change: ids, logprobs, top lists with
// k entries as sets, prompt logprobs and the reason of the end.
func (a Answer) Digest(k int) Digest {
	h := sha256.New()
	writeText(h, a.Finish)
	for _, list := range [][]Step{a.Steps, a.Prompt} {
		writeInt(h, len(list))
		for _, s := range list {
			s.write(h, k)
		}
	}
	var d Digest
	copy(d[:], h.Sum(nil))
	return d
}

func (s Step) write(h hash.Hash, k int) {
	writeText(h, s.Key)
	writeValue(h, s)
	cut, n := s.cut(k)
	writeInt(h, n)
	for _, e := range s.Top {
		// What equals the last value may be another token of the same value:
		// which ones make it into the list is open there. The values count.
		if e.Value.Value > cut || math.IsNaN(e.Value.Value) {
			writeText(h, e.Key)
			writeBits(h, e.Value.Value)
		}
	}
	writeBits(h, cut)
}

// cut is the k-th largest value of the top list and how many of k are there:
// a list may hold one more, the chosen token where it is not among the first k.
func (s Step) cut(k int) (value float64, n int) {
	n = min(len(s.Top), k)
	if n == 0 {
		return 0, 0
	}
	return s.Top[n-1].Value.Value, n
}

func writeValue(h hash.Hash, s Step) {
	if s.Value.Null {
		writeText(h, "null")
		return
	}
	writeBits(h, s.Value.Value)
}

func writeBits(h hash.Hash, v float64) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], math.Float64bits(v))
	h.Write(b[:])
}

func writeInt(h hash.Hash, n int) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], uint64(n)) //nolint:gosec // a length
	h.Write(b[:])
}

func writeText(h hash.Hash, s string) {
	writeInt(h, len(s))
	h.Write([]byte(s))
}
