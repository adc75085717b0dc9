package cudakernels

import (
	"math"
	"math/rand/v2"
)

// A generator makes cases from a fixed seed: the same ones in every run.
type generator struct{ *rand.Rand }

func newGenerator(seed uint64) generator {
	return generator{rand.New(rand.NewPCG(seed, 6))}
}

func pick[T any](g generator, from ...T) T { return from[g.IntN(len(from))] }

// kinds of values
const (
	normal  = iota // like activations
	spread         // exponents far apart: any change of order shows
	wild           // every bit pattern: infinities, NaN with payloads, denormals
	special        // a few values that meet each other: zeros, the ends of ranges
)

var specials = []float32{
	0, float32(math.Copysign(0, -1)), 1, -1, 0x1p-149, -0x1p-149, 0x1p-126, 0x1.fffffep127,
	float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()), 65504, 65519.996, 65520,
	0x1p-24, 0x1p-25, 0x1.8p-24, 0x1.000002p-25, 88, -88, -87.33654, -87.33655, -103, 1e30,
}

func (g generator) bits(d dtype, kind int) uint32 {
	switch kind {
	case wild:
		return g.Uint32() // keeps payloads of NaN
	case special:
		return d.narrow(pick(g, specials...))
	case spread:
		reach := 20
		if d == f16 {
			reach = 9
		}
		return d.narrow(float32(math.Ldexp(g.NormFloat64(), g.IntN(2*reach+1)-reach)))
	}
	return d.narrow(float32(g.NormFloat64()))
}

// layout places batch matrices of rows x cols: by rows or by columns, with
// gaps, at odd elements, with negative and (broadcast) zero strides.
func (g generator) layout(d dtype, batch, rows, cols int, broadcast bool) operand {
	o := operand{dtype: d, rows: rows, cols: cols}
	gap := pick(g, 0, 0, 1, 5, 8)
	if g.IntN(3) > 0 {
		o.col = pick(g, 1, 1, 1, 2, 3)
		o.row = cols*o.col + gap
	} else {
		o.row = pick(g, 1, 1, 2)
		o.col = rows*o.row + gap
	}
	o.step = max(rows*o.row, cols*o.col) + gap
	if broadcast {
		o.row *= g.IntN(2)
		o.col *= pick(g, 0, 1, 1)
		o.step *= g.IntN(2)
	}
	for _, step := range []*int{&o.row, &o.col, &o.step} {
		if g.IntN(8) == 0 {
			*step = -*step
		}
	}
	return o.place(batch, pick(g, 0, 0, 1, 2, 3, 7), g.IntN(3))
}

// place gives the operand its memory, `before` elements from a multiple of 256
// bytes and `behind` more than it needs.
func (o operand) place(batch, before, behind int) operand {
	low, high := 0, 0
	for _, end := range []int{(o.rows - 1) * o.row, (o.cols - 1) * o.col, (batch - 1) * o.step} {
		low, high = low+min(end, 0), high+max(end, 0)
	}
	if o.rows > 0 && o.cols > 0 && batch > 0 {
		o.offset = (before - low) * o.dtype.size()
		o.memory = make([]byte, o.offset+(high+1+behind)*o.dtype.size())
	}
	return o
}

// fill gives every element a value.
func (g generator) fill(o operand, batch, kind int) operand {
	for e := range batch {
		for i := range o.rows {
			for j := range o.cols {
				o.setBits(e, i, j, g.bits(o.dtype, kind))
			}
		}
	}
	return o
}

func (g generator) input(d dtype, batch, rows, cols, kind int, broadcast bool) operand {
	return g.fill(g.layout(d, batch, rows, cols, broadcast), batch, kind)
}

// output is memory full of marks, which must stay between the elements.
func (g generator) output(d dtype, batch, rows, cols int) operand {
	return marked(g.layout(d, batch, rows, cols, false))
}

func marked(o operand) operand {
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

func blank(op, m, n, k int) testCase {
	c := testCase{op: op, m: m, n: n, k: k, alpha: 1, batch: 1}
	for i := range c.operands {
		c.operands[i] = operand{absent: true}
	}
	return c
}

// mm is a product with operands that lie anyhow.
func (g generator) mm(d dtype, batch, m, n, k int) testCase {
	c, kind := blank(opMM, m, n, k), pick(g, normal, spread, spread, wild, special)
	c.batch = batch
	c.operands[inA] = g.input(d, batch, m, k, kind, g.IntN(16) == 0)
	c.operands[inB] = g.input(d, batch, k, n, kind, g.IntN(16) == 0)
	c.operands[out1] = g.output(g.sameOr(d), batch, m, n)
	if g.IntN(2) == 0 {
		c.beta = pick[float32](g, 1, 1, 0, -0.5, 0.3)
		c.alpha = pick[float32](g, 1, 1, 0, -2, 0.7)
		c.operands[inC] = g.input(g.sameOr(d), batch, m, n, kind, true)
	}
	return c
}

// Layouts of b in an aligned product.
const (
	alongK = iota // a weight [n, k]
	alongN        // [k, n]
)

// aligned is a product whose operands lie in runs of 16 bytes. The output is
// float32, in which the last bit of a sum shows.
func (g generator) aligned(d dtype, layout, m, n, k, kind int) testCase {
	c := blank(opMM, m, n, k)
	up := func(v int) int { return (v + 7) / 8 * 8 }
	a := operand{dtype: d, rows: m, cols: k, row: up(k), col: 1}
	b := operand{dtype: d, rows: k, cols: n, row: 1, col: up(k)}
	if layout == alongN {
		b.row, b.col = up(n), 1
	}
	c.operands[inA], c.operands[inB] = g.fill(a.place(1, 0, 0), 1, kind), g.fill(b.place(1, 0, 0), 1, kind)
	c.operands[out1] = marked(operand{dtype: f32, rows: m, cols: n, row: n, col: 1}.place(1, 0, 0))
	return c
}

func (g generator) pack(d dtype, n, k int) testCase {
	c := blank(opPack, 0, n, k)
	c.operands[inB] = g.input(d, 1, k, n, pick(g, normal, wild), false)
	steps := (n + 63) / 64 * k
	out := operand{dtype: d, rows: steps, cols: 64, row: 64, col: 1}
	c.operands[out1] = marked(out.place(1, g.IntN(3), 2))
	return c
}

func (g generator) row(op, rows, cols int) testCase {
	d, kind := g.dtype(), pick(g, normal, spread, spread, wild, special)
	c := blank(op, rows, cols, 0)
	c.operands[inA] = g.input(d, 1, rows, cols, kind, g.IntN(16) == 0)
	width := cols
	if op == opSum || op == opMean {
		width = 1
	}
	c.operands[out1] = g.output(g.sameOr(d), 1, rows, width)
	if op == opRMS || op == opAddRMS {
		c.beta = pick[float32](g, 1e-6, 1e-5, 0)
		if g.IntN(3) > 0 {
			c.operands[inC] = g.input(g.sameOr(d), 1, 1, cols, pick(g, normal, kind), g.IntN(8) == 0)
		}
	}
	if op == opAddRMS {
		c.operands[inB] = g.input(g.sameOr(d), 1, rows, cols, kind, g.IntN(8) == 0)
		c.operands[out2] = g.output(g.sameOr(d), 1, rows, cols)
	}
	return c
}

// wideRow is a row case of one dtype in whole runs at multiples of 16 bytes, for
// which there are kernels of their own.
func (g generator) wideRow(op, rows, cols int) testCase {
	c := g.row(op, rows, cols)
	d, kind := c.operands[inA].dtype, pick(g, normal, spread, wild, special)
	for i, o := range c.operands {
		if o.absent {
			continue
		}
		wide := operand{dtype: d, rows: o.rows, cols: o.cols, row: cols + pick(g, 0, 8), col: 1}.place(1, 0, 0)
		if i < out1 {
			c.operands[i] = g.fill(wide, 1, kind)
		} else {
			c.operands[i] = marked(wide)
		}
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
	c.inPlace = true
	c.operands[out1] = c.operands[inA]
	if op == opAddRMS {
		c.operands[out2] = c.operands[inB]
	}
	return c
}
