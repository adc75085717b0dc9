package cudakernels

import (
	"encoding/binary"
	"fmt"
)

// The numbers of targets/cuda/conformance/driver.cpp.
const (
	opMM = iota
	opPack
	opSum
	opMean
	opSoftmax
	opLogSoftmax
	opRMS
	opAddRMS
	opControl
)

var opNames = [...]string{
	"mm", "pack", "sum", "mean", "softmax", "log_softmax", "rms_norm", "add_rms_norm", "control_mm",
}

// The places of operands in a case.
const (
	inA  = iota // a, x
	inB         // b, residual
	inC         // c, weight
	out1        // out
	out2        // residual_out
	operands
)

// Statuses of invar_cuda.h.
const (
	statusOK = iota
	badSize
	badDtype
	badVariant
	badPointer
)

// An operand is a matrix somewhere in a piece of memory, or a batch of them.
type operand struct {
	dtype      dtype
	rows, cols int
	row, col   int // strides in elements
	step       int // from matrix to matrix
	offset     int // bytes from the start of memory to element (0, 0)
	memory     []byte
	absent     bool
}

func (o *operand) at(e, i, j int) []byte {
	p := o.offset + (e*o.step+i*o.row+j*o.col)*o.dtype.size()
	return o.memory[p : p+o.dtype.size()]
}

func (o *operand) bits(e, i, j int) uint32 {
	if o.dtype == f32 {
		return binary.LittleEndian.Uint32(o.at(e, i, j))
	}
	return uint32(binary.LittleEndian.Uint16(o.at(e, i, j)))
}

func (o *operand) setBits(e, i, j int, u uint32) {
	if o.dtype == f32 {
		binary.LittleEndian.PutUint32(o.at(e, i, j), u)
		return
	}
	binary.LittleEndian.PutUint16(o.at(e, i, j), uint16(u))
}

func (o *operand) get(e, i, j int) float32    { return o.dtype.widen(o.bits(e, i, j)) }
func (o *operand) set(e, i, j int, f float32) { o.setBits(e, i, j, o.dtype.narrow(f)) }

func (o *operand) values(e, i int) []float32 {
	v := make([]float32, o.cols)
	for j := range v {
		v[j] = o.get(e, i, j)
	}
	return v
}

// A testCase is one call of one operator.
type testCase struct {
	op          int
	m, n, k     int  // rows, cols, 0 of the row operators
	inPlace     bool // the outputs are the inputs' memory
	alpha, beta float32
	variant     int
	batch       int
	status      int // that the call must give
	operands    [operands]operand
}

func (c *testCase) String() string {
	text := fmt.Sprintf("%s m=%d n=%d k=%d batch=%d in place=%t alpha=%v beta=%v variant=%d",
		opNames[c.op], c.m, c.n, c.k, c.batch, c.inPlace, c.alpha, c.beta, c.variant)
	for i, o := range c.operands {
		if !o.absent {
			text += fmt.Sprintf(" %s=%v(row %d, col %d, step %d, offset %d)",
				[...]string{"a", "b", "c", "out", "out2"}[i], o.dtype, o.row, o.col, o.step, o.offset)
		}
	}
	return text
}

// encode is the case as the driver reads it.
func (c *testCase) encode(to []byte) []byte {
	put := func(values ...int) {
		for _, v := range values {
			to = binary.LittleEndian.AppendUint64(to, uint64(v))
		}
	}
	inPlace := 0
	if c.inPlace {
		inPlace = 1
	}
	put(c.op, c.m, c.n, c.k, inPlace, int(bits(c.alpha)), int(bits(c.beta)), c.variant, c.batch)
	for i := range out2 {
		put(c.operands[i].step)
	}
	for _, o := range c.operands {
		length := len(o.memory)
		if o.absent {
			length = -1
		}
		put(int(o.dtype), o.row, o.col, o.offset, length)
	}
	for _, o := range c.operands {
		to = append(to, o.memory...)
	}
	return to
}

// expect is what the driver must write: the status, and the memory of both
// outputs with what the reference computes in its elements, everything between
// them untouched.
func (c *testCase) expect(m model) []byte {
	o, p := c.operands[out1], c.operands[out2]
	o.memory, p.memory = append([]byte{}, o.memory...), append([]byte{}, p.memory...)
	switch {
	case c.status != statusOK:
	case c.op == opMM:
		for e := range c.batch {
			c.expectMM(e, &o, m)
		}
	case c.op == opPack:
		c.expectPack(&o)
	default:
		for i := range c.m {
			c.expectRow(i, &o, &p)
		}
	}
	want := binary.LittleEndian.AppendUint64(nil, uint64(c.status))
	return append(append(want, o.memory...), p.memory...)
}

func (c *testCase) expectMM(e int, o *operand, m model) {
	a, b := c.operands[inA], c.operands[inB]
	pad := a.dtype != f32
	if !pad {
		m = chain
	}
	columns := make([][]float32, c.n)
	for j := range columns {
		for i := range c.k {
			columns[j] = append(columns[j], b.get(e, i, j))
		}
	}
	hasC := !c.operands[inC].absent
	for i := range c.m {
		row := a.values(e, i)
		for j := range c.n {
			var addend float32
			if hasC {
				addend = c.operands[inC].get(e, i, j)
			}
			o.set(e, i, j, finish(product(row, columns[j], m, pad), c.alpha, c.beta, addend, hasC))
		}
	}
}

func (c *testCase) expectPack(o *operand) {
	for i := range o.rows {
		for j := range 64 {
			o.setBits(0, i, j, 0)
			if n := i/c.k*64 + j; n < c.n {
				o.set(0, i, j, c.operands[inB].get(0, i%c.k, n))
			}
		}
	}
}

func (c *testCase) expectRow(i int, o, p *operand) {
	x := c.operands[inA].values(0, i)
	var y []float32
	switch c.op {
	case opSum:
		y = []float32{sumOf(x)}
	case opMean:
		y = []float32{meanOf(x)}
	case opSoftmax:
		y = softmax(x)
	case opLogSoftmax:
		y = logSoftmax(x)
	default:
		y = c.normRow(i, x, p)
	}
	for j, v := range y {
		o.set(0, i, j, v)
	}
}

func (c *testCase) normRow(i int, x []float32, p *operand) []float32 {
	if c.op == opAddRMS {
		for j := range x {
			p.set(0, i, j, add(x[j], c.operands[inB].get(0, i, j)))
			x[j] = p.get(0, i, j)
		}
	}
	var weight []float32
	if !c.operands[inC].absent {
		weight = c.operands[inC].values(0, 0)
	}
	return rmsNorm(x, weight, c.beta)
}

// firstDifference says which element of which output differs, or that the
// memory between elements was written.
func (c *testCase) firstDifference(got, want []byte) string {
	if g, w := binary.LittleEndian.Uint64(got), binary.LittleEndian.Uint64(want); g != w {
		return fmt.Sprintf("status %d, want %d", g, w)
	}
	got, want = got[8:], want[8:]
	for _, at := range []int{out1, out2} {
		o := c.operands[at]
		g, w := o, o
		g.memory, w.memory = got[:len(o.memory)], want[:len(o.memory)]
		got, want = got[len(o.memory):], want[len(o.memory):]
		if text := elementsThatDiffer(c.batch, &g, &w); text != "" {
			return text
		}
	}
	return "memory between the elements was written"
}

func elementsThatDiffer(batch int, g, w *operand) string {
	differ, first := 0, ""
	if len(g.memory) == 0 {
		return ""
	}
	for e := range batch {
		for i := range g.rows {
			for j := range g.cols {
				if g.bits(e, i, j) == w.bits(e, i, j) {
					continue
				}
				if differ++; differ == 1 {
					first = fmt.Sprintf("%d, %d, %d: got %x (%g), want %x (%g)", e, i, j,
						g.bits(e, i, j), g.get(e, i, j), w.bits(e, i, j), w.get(e, i, j))
				}
			}
		}
	}
	if differ == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d elements differ, first %s", differ, batch*g.rows*g.cols, first)
}
