package kernels

import (
	"encoding/binary"
	"fmt"
)

// The numbers of targets/cpu/conformance/driver.c.
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

// An operand is a matrix somewhere in a piece of memory.
type operand struct {
	dtype      dtype
	rows, cols int
	row, col   int // strides in elements
	offset     int // bytes from the start of memory to element (0, 0)
	memory     []byte
	absent     bool
}

func (o *operand) at(i, j int) []byte {
	p := o.offset + (i*o.row+j*o.col)*o.dtype.size()
	return o.memory[p : p+o.dtype.size()]
}

func (o *operand) bits(i, j int) uint32 {
	if o.dtype == f32 {
		return binary.LittleEndian.Uint32(o.at(i, j))
	}
	return uint32(binary.LittleEndian.Uint16(o.at(i, j)))
}

func (o *operand) setBits(i, j int, u uint32) {
	if o.dtype == f32 {
		binary.LittleEndian.PutUint32(o.at(i, j), u)
		return
	}
	binary.LittleEndian.PutUint16(o.at(i, j), uint16(u))
}

func (o *operand) get(i, j int) float32    { return o.dtype.widen(o.bits(i, j)) }
func (o *operand) set(i, j int, f float32) { o.setBits(i, j, o.dtype.narrow(f)) }

func (o *operand) values(i int) []float32 {
	v := make([]float32, o.cols)
	for j := range v {
		v[j] = o.get(i, j)
	}
	return v
}

func (o *operand) column(j int) []float32 {
	v := make([]float32, o.rows)
	for i := range v {
		v[i] = o.get(i, j)
	}
	return v
}

// A testCase is one call of one operator.
type testCase struct {
	op          int
	m, n, k     int     // rows, cols, 0 of the row operators
	packed      bool    // mm: through pack; row operators: in place
	alpha, beta float32 // beta is eps of the norms
	piece       int
	operands    [operands]operand
}

func (c *testCase) String() string {
	text := fmt.Sprintf("%s m=%d n=%d k=%d packed=%t alpha=%v beta=%v piece=%d",
		opNames[c.op], c.m, c.n, c.k, c.packed, c.alpha, c.beta, c.piece)
	for i, o := range c.operands {
		if !o.absent {
			text += fmt.Sprintf(" %s=%v(row %d, col %d, offset %d)",
				[...]string{"a", "b", "c", "out", "out2"}[i], o.dtype, o.row, o.col, o.offset)
		}
	}
	return text
}

// encode is the case as the driver reads it.
func (c *testCase) encode(to []byte) []byte {
	put := func(v int64) { to = binary.LittleEndian.AppendUint64(to, uint64(v)) }
	packed := int64(0)
	if c.packed {
		packed = 1
	}
	for _, v := range []int64{
		int64(c.op), int64(c.m), int64(c.n), int64(c.k), packed,
		int64(bits(c.alpha)), int64(bits(c.beta)), int64(c.piece),
	} {
		put(v)
	}
	for _, o := range c.operands {
		length := int64(len(o.memory))
		if o.absent {
			length = -1
		}
		for _, v := range []int64{int64(o.dtype), int64(o.row), int64(o.col), int64(o.offset), length} {
			put(v)
		}
	}
	for _, o := range c.operands {
		to = append(to, o.memory...)
	}
	return to
}

// expect is the memory of both outputs after the call: what the reference
// computes in its elements, everything between them untouched.
func (c *testCase) expect() [2][]byte {
	o, p := c.operands[out1], c.operands[out2]
	o.memory, p.memory = append([]byte{}, o.memory...), append([]byte{}, p.memory...)
	switch c.op {
	case opMM:
		c.expectMM(&o)
	case opPack:
		c.expectPack(&o)
	default:
		for i := range c.m {
			c.expectRow(i, &o, &p)
		}
	}
	return [2][]byte{o.memory, p.memory}
}

func (c *testCase) expectMM(o *operand) {
	b := make([][]float32, c.n)
	for j := range b {
		b[j] = c.operands[inB].column(j)
	}
	for i := range c.m {
		a := c.operands[inA].values(i)
		for j := range c.n {
			var bias float32
			hasC := !c.operands[inC].absent
			if hasC {
				bias = c.operands[inC].get(i, j)
			}
			o.set(i, j, finish(dot(a, b[j]), c.alpha, c.beta, bias, hasC))
		}
	}
}

func (c *testCase) expectPack(o *operand) {
	for i := range o.rows {
		for j := range 64 {
			panel, step := i/c.k, i%c.k
			o.setBits(i, j, 0)
			if n := panel*64 + j; n < c.n {
				o.set(i, j, c.operands[inB].get(step, n))
			}
		}
	}
}

func (c *testCase) expectRow(i int, o, p *operand) {
	x := c.operands[inA].values(i)
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
		o.set(i, j, v)
	}
}

func (c *testCase) normRow(i int, x []float32, p *operand) []float32 {
	if c.op == opAddRMS {
		for j := range x {
			p.set(i, j, add(x[j], c.operands[inB].get(i, j)))
			x[j] = p.get(i, j)
		}
	}
	var weight []float32
	if !c.operands[inC].absent {
		weight = c.operands[inC].values(0)
	}
	return rmsNorm(x, weight, c.beta)
}
