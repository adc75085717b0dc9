package kernels

import (
	"math"
	"math/rand/v2"
)

// A generator makes cases from a fixed seed: the same ones in every run.
type generator struct{ *rand.Rand }

func newGenerator(seed uint64) generator {
	return generator{rand.New(rand.NewPCG(seed, 20))}
}

func pick[T any](g generator, from ...T) T { return from[g.IntN(len(from))] }

// kinds of values
const (
	normal  = iota // like activations
	wild           // every bit pattern: infinities, NaN with payloads, denormals
	special        // a few values that meet each other: zeros, ones, the ends of ranges
	ties           // products and sums that land on or next to the middle of two values
	kinds
)

var specials = []float32{
	0, float32(math.Copysign(0, -1)), 1, -1, 0x1p-149, -0x1p-149, 0x1p-126, 0x1.fffffep127,
	float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()), 65504, 65519.996, 65520,
	0x1p-24, 0x1p-25, 0x1.8p-24, 0x1.000002p-25, 88, -88, -87.33654, -87.33655, -103, 1e30,
}

func (g generator) value(kind int) float32 {
	switch kind {
	case wild:
		return fromBits(g.Uint32())
	case special:
		return specials[g.IntN(len(specials))]
	case ties:
		mantissa := pick[uint32](g, 0, 1, 2, 3, 0x400000, 0x400001, 0x7fffff, 0x7ffffe, 0x000800, 0x001000)
		return fromBits(g.Uint32()&1<<31 | (uint32(127+g.IntN(3)*12-12)+uint32(g.IntN(2)))<<23 | mantissa)
	}
	return float32(g.NormFloat64())
}

// layout places a rows x cols matrix: by rows or by columns, with gaps, odd
// addresses, negative and (broadcast) zero strides.
func (g generator) layout(d dtype, rows, cols int, broadcast bool) operand {
	o := operand{dtype: d, rows: rows, cols: cols}
	gap := pick(g, 0, 0, 1, 5)
	if g.IntN(3) > 0 {
		o.col = pick(g, 1, 1, 1, 2, 3)
		o.row = cols*o.col + gap
	} else {
		o.row = pick(g, 1, 1, 2)
		o.col = rows*o.row + gap
	}
	if broadcast {
		o.row *= g.IntN(2)
		o.col *= pick(g, 0, 1, 1)
	}
	low, high := 0, 0
	for _, step := range []*int{&o.row, &o.col} {
		if g.IntN(8) == 0 {
			*step = -*step
		}
	}
	for _, end := range []int{max(rows-1, 0) * o.row, max(cols-1, 0) * o.col} {
		low, high = low+min(end, 0), high+max(end, 0)
	}
	o.offset = -low*d.size() + pick(g, 0, 0, 1, 2, 4, 7)
	if rows > 0 && cols > 0 {
		o.memory = make([]byte, o.offset+(high+1)*d.size()+g.IntN(9))
	}
	return o
}

func (g generator) input(d dtype, rows, cols, kind int, broadcast bool) operand {
	o := g.layout(d, rows, cols, broadcast)
	for i := range rows {
		for j := range cols {
			o.setBits(i, j, d.narrow(g.value(kind)))
			if kind == wild {
				o.setBits(i, j, g.Uint32()) // keeps payloads of NaN
			}
		}
	}
	return o
}

// output is memory full of marks, which must stay between the elements.
func (g generator) output(d dtype, rows, cols int) operand {
	o := g.layout(d, rows, cols, false)
	for i := range o.memory {
		o.memory[i] = byte(0x80 + i%7)
	}
	return o
}

func (g generator) dtype() dtype { return dtype(g.IntN(3)) }

// sameOr is d, or now and then any other.
func (g generator) sameOr(d dtype) dtype {
	if g.IntN(4) == 0 {
		return g.dtype()
	}
	return d
}

func (g generator) mm(m, n, k int) testCase {
	d, kind := g.dtype(), pick(g, normal, normal, wild, special, ties)
	c := testCase{op: opMM, m: m, n: n, k: k, alpha: 1, beta: 0, packed: g.IntN(2) == 0, piece: g.IntN(3)}
	c.operands[inA] = g.input(d, m, k, kind, g.IntN(16) == 0)
	c.operands[inB] = g.input(g.sameOr(d), k, n, kind, g.IntN(16) == 0)
	c.operands[inC] = operand{absent: true}
	c.operands[out1] = g.output(g.sameOr(d), m, n)
	c.operands[out2] = operand{absent: true}
	if g.IntN(2) == 0 {
		c.beta = pick[float32](g, 1, 1, 0, -0.5, 0.3)
		c.alpha = pick[float32](g, 1, 1, 0, -2, 0.7)
		c.operands[inC] = g.input(g.sameOr(d), m, n, kind, true)
	}
	return c
}

func (g generator) pack(n, k int) testCase {
	c := testCase{op: opPack, n: n, k: k, piece: g.IntN(3)}
	for i := range c.operands {
		c.operands[i] = operand{absent: true}
	}
	d := g.dtype()
	c.operands[inB] = g.input(d, k, n, pick(g, normal, wild), false)
	steps := (n + 63) / 64 * k
	c.operands[out1] = operand{
		dtype: d, rows: steps, cols: 64, row: 64, col: 1, offset: g.IntN(4),
		memory: make([]byte, steps*64*d.size()+8),
	}
	return c
}

func (g generator) row(op, rows, cols int) testCase {
	d, kind := g.dtype(), pick(g, normal, normal, wild, special, ties)
	c := testCase{op: op, m: rows, n: cols, piece: g.IntN(4)}
	for i := range c.operands {
		c.operands[i] = operand{absent: true}
	}
	c.operands[inA] = g.input(d, rows, cols, kind, g.IntN(16) == 0)
	c.operands[out1] = g.output(g.sameOr(d), rows, cols)
	if op == opSum || op == opMean {
		c.operands[out1] = g.output(g.sameOr(d), rows, 1)
	}
	if op == opRMS || op == opAddRMS {
		c.beta = pick[float32](g, 1e-6, 1e-5, 0)
		if g.IntN(3) > 0 {
			c.operands[inC] = g.input(g.sameOr(d), 1, cols, pick(g, normal, normal, kind), g.IntN(8) == 0)
		}
	}
	if op == opAddRMS {
		c.operands[inB] = g.input(g.sameOr(d), rows, cols, kind, g.IntN(8) == 0)
		c.operands[out2] = g.output(g.sameOr(d), rows, cols)
	}
	return c
}

// inPlace makes the outputs the memory of the inputs, which the header allows
// for operators whose output is as large as their input.
func (g generator) inPlace(op, rows, cols int) testCase {
	c := g.row(op, rows, cols)
	for c.operands[inA].row == 0 || c.operands[inA].col == 0 ||
		!c.operands[inB].absent && (c.operands[inB].row == 0 || c.operands[inB].col == 0) {
		c = g.row(op, rows, cols)
	}
	c.packed = true
	c.operands[out1] = c.operands[inA]
	if op == opAddRMS {
		c.operands[out2] = c.operands[inB]
	}
	return c
}
