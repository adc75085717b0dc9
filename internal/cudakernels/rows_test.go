package cudakernels

import "testing"

// Variants of row operators: 0 is the library's choice.
const (
	anyVariant = iota
	blockVariant
	warpVariant
	splitVariant
)

// rowCases are calls of all row operators in every variant.
func rowCases(seed uint64, few bool) *suite {
	s, g := new(suite), newGenerator(seed)
	widths := []int{0, 1, 3, 8, 31, 32, 33, 255, 257, 1000, 1025, 2047, 2048}
	if few {
		widths = []int{1, 33, 257, 2048}
	}
	for op := opSum; op <= opAddRMS; op++ {
		for _, cols := range widths {
			for variant := range 4 {
				s.add(inVariant(g.row(op, pick(g, 0, 1, 2, 3, 8, 9), cols), variant))
			}
		}
		for _, cols := range []int{4097, 16384, 16385, 40000} {
			for variant := range 4 {
				s.add(inVariant(g.row(op, pick(g, 1, 2), cols), variant))
			}
		}
		for _, cols := range []int{8, 264, 2048, 2056, 17408} {
			for variant := range 4 {
				s.add(inVariant(g.wideRow(op, pick(g, 1, 3), cols), variant))
			}
		}
		if op != opSum && op != opMean {
			s.add(g.inPlace(op, 5, 70), g.inPlace(op, 3, 2500), g.inPlace(op, 2, 17000))
		}
	}
	return s
}

// inVariant is the case in a variant, with the status that it must give.
func inVariant(c testCase, variant int) testCase {
	c.variant = variant
	norm := c.op == opRMS || c.op == opAddRMS
	if variant == warpVariant && c.n > 2048 || variant == splitVariant && norm {
		c.status = badVariant
	}
	return c
}

func TestRows(t *testing.T) {
	t.Parallel()
	driver := host.emulator(t)
	for i, m := range []mode{{"0", "early", "chain"}, {"1", "late", "chain"}, {"77", "late", "chain"}} {
		t.Run(m.String(), func(t *testing.T) {
			t.Parallel()
			rowCases(uint64(10+i), i > 0).compare(t, driver, m)
		})
	}
}

// TestConversions sends every 16-bit value through both directions, and float32
// around every place where a rounding turns.
func TestConversions(t *testing.T) {
	t.Parallel()
	driver := host.emulator(t)
	s, g := new(suite), newGenerator(4)
	for _, from := range []dtype{f32, bf16, f16} {
		for _, to := range []dtype{f32, bf16, f16} {
			const n = 1 << 16
			c := blank(opMM, n/64, 64, 1)
			a := operand{dtype: from, rows: n / 64, cols: 1, row: 1, col: 1}
			b := operand{dtype: from, rows: 1, cols: 64, row: 64, col: 1}
			c.operands[inA] = g.fill(a.place(1, 0, 0), 1, normal)
			c.operands[inB] = g.fill(b.place(1, 0, 0), 1, normal)
			// 0 * product + 1 * c is c, widened and rounded once (and + 0, so -0 is +0).
			c.alpha, c.beta = 0, 1
			addend := operand{dtype: from, rows: n / 64, cols: 64, row: 64, col: 1}.place(1, 0, 0)
			for i := range n {
				u := uint32(i)
				if from == f32 {
					u = u<<16 | pick[uint32](g, 0, 1, 0x7fff, 0x8000, 0x8001, 0x0fff, 0x1000, 0x1001, 0xffff)
				}
				addend.setBits(0, i/64, i%64, u)
			}
			c.operands[inC] = addend
			c.operands[out1] = marked(operand{dtype: to, rows: n / 64, cols: 64, row: 64, col: 1}.place(1, 0, 0))
			s.add(c)
		}
	}
	s.compare(t, driver, mode{"0", "early", "chain"})
}
