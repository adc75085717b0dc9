package cudakernels

import (
	"bytes"
	"testing"
)

// How many variants a dtype has, half of them with the chunks of k in blocks of
// their own; and the tile that takes any strides.
func variants(d dtype) int {
	if d == f32 {
		return 6
	}
	return 8
}

const gathered = 3

// anyhow are products with operands that lie anyhow.
func anyhow(seed uint64, few bool) *suite {
	s, g := new(suite), newGenerator(seed)
	sizes := []int{0, 1, 3, 15, 17, 31, 64, 65}
	count := 5
	if few {
		sizes, count = []int{1, 17, 65}, 2
	}
	for _, d := range []dtype{f32, bf16, f16} {
		for _, m := range sizes {
			for range count {
				c := g.mm(d, pick(g, 1, 1, 1, 2, 3), m, pick(g, 0, 1, 7, 16, 63, 66, 130), pick(g, 0, 1, 2, 15, 33, 64, 70, 130))
				s.add(c)
			}
		}
		c := g.mm(d, 1, 20, 30, 1100) // three chunks
		s.add(c)
		c.variant = 1 + gathered
		if d == f32 {
			c.variant = 3
		}
		s.add(c)
		c.variant += variants(d) / 2
		s.add(c)
		c = g.mm(d, 2, 3, 40, 9000) // chunks of 576
		s.add(c)
	}
	s.add(g.pack(f32, 0, 3), g.pack(bf16, 70, 5), g.pack(f16, 64, 33), g.pack(f32, 129, 2), g.pack(bf16, 3, 0))
	return s
}

func TestMatrixProducts(t *testing.T) {
	t.Parallel()
	driver := host.emulator(t)
	for i, m := range []mode{{"0", "early", "chain"}, {"1", "late", "wide"}, {"99", "late", "chain"}} {
		t.Run(m.String(), func(t *testing.T) {
			t.Parallel()
			anyhow(uint64(20+i), i > 0).compare(t, driver, m)
		})
	}
}

// alignedCases is the same small problem in every variant, for both layouts.
func alignedCases(m, n, k int) *suite {
	s, g := new(suite), newGenerator(uint64(m*1000+n))
	for _, d := range []dtype{f32, bf16, f16} {
		for _, layout := range []int{alongK, alongN} {
			c := g.aligned(d, layout, m, n, k, spread)
			for v := range 1 + variants(d) {
				c.variant = v
				s.add(c)
			}
		}
	}
	return s
}

// TestEveryVariant: all tiles, chunks together or in blocks of their own, weights
// along n or k, and the tile that gathers give the bits of the reference: each
// (i, j) has each of its k once, in the order of the contract.
func TestEveryVariant(t *testing.T) {
	t.Parallel()
	driver := host.emulator(t)
	for _, m := range []mode{{"0", "late", "chain"}, {"1", "early", "wide"}} {
		t.Run(m.String(), func(t *testing.T) {
			t.Parallel()
			for _, size := range [][3]int{{5, 72, 1100}, {130, 136, 70}, {17, 65, 1030}} {
				alignedCases(size[0], size[1], size[2]).compare(t, driver, m)
			}
		})
	}
}

// rowBits gives the rows of out for the first m rows of one a, for each m.
func rowBits(t *testing.T, driver string, op int, counts []int, d dtype) map[int][][]byte {
	t.Helper()
	const n, k = 40, 1100
	most := counts[len(counts)-1]
	g := newGenerator(11)
	whole := g.aligned(d, alongK, most, n, k, spread)
	s := new(suite)
	for _, m := range counts {
		c := whole
		c.op, c.m = op, m
		c.operands[inA].rows = m
		c.operands[out1] = marked(operand{dtype: f32, rows: m, cols: n, row: n, col: 1}.place(1, 0, 0))
		s.add(c)
	}
	rows := map[int][][]byte{}
	for i, got := range s.results(t, driver, mode{"0", "late", "wide"}) {
		for got = got[8:]; len(got) > 0; got = got[4*n:] {
			rows[counts[i]] = append(rows[counts[i]], got[:4*n])
		}
	}
	return rows
}

// TestRowsDoNotDependOnTheBatch: a row alone and among others has the same
// bits, whichever variant the library chooses; the comparison that finds this
// finds the control kernel variant.
func TestRowsDoNotDependOnTheBatch(t *testing.T) {
	t.Parallel()
	driver := host.emulator(t)
	counts := []int{1, 2, 3, 7, 11, 16, 17, 32, 65}
	for _, d := range []dtype{f32, bf16} {
		for op, wantSame := range map[int]bool{opMM: true, opControl: false} {
			rows := rowBits(t, driver, op, counts, d)
			last := rows[counts[len(counts)-1]]
			different := 0
			for _, m := range counts[:len(counts)-1] {
				same := true
				for i, row := range rows[m] {
					same = same && bytes.Equal(row, last[i])
				}
				if !same {
					different++
				}
			}
			if wantSame && different > 0 || !wantSame && different < len(counts)-2 {
				t.Errorf("%v %s: %d of %d row counts give other bits, want all the same: %t",
					d, opNames[op], different, len(counts)-1, wantSame)
			}
		}
	}
}

// TestOrderShows: in the values that these tests use another order of k, or
// other chunks, would give other bits.
func TestOrderShows(t *testing.T) {
	t.Parallel()
	g := newGenerator(5)
	for _, d := range []dtype{f32, bf16, f16} {
		c := g.aligned(d, alongK, 1, 64, 1100, spread)
		row := c.operands[inA].values(0, 0)
		reversed, swapped, unbroken := 0, 0, 0
		for j := range c.n {
			var col, backA, backB []float32
			for i := range c.k {
				col = append(col, c.operands[inB].get(0, i, j))
			}
			for i := range c.k {
				backA, backB = append(backA, row[c.k-1-i]), append(backB, col[c.k-1-i])
			}
			want := product(row, col, wide, true)
			if product(backA, backB, wide, true) != want {
				reversed++
			}
			otherA := append(append([]float32{}, row[512:1024]...), append(append([]float32{}, row[:512]...), row[1024:]...)...)
			otherB := append(append([]float32{}, col[512:1024]...), append(append([]float32{}, col[:512]...), col[1024:]...)...)
			if v := add(product(otherA[512:1024], otherB[512:1024], wide, true),
				add(product(otherA[:512], otherB[:512], wide, true), product(otherA[1024:], otherB[1024:], wide, true))); v != want {
				swapped++
			}
			if wide(row, col, 0) != want {
				unbroken++
			}
		}
		if reversed < 16 || swapped < 4 || unbroken < 16 {
			t.Errorf("%v: of 64 elements %d change when k is reversed, %d when chunks are added in another order, %d without chunks",
				d, reversed, swapped, unbroken)
		}
	}
}
