package cudakernels

import (
	"math"
	"math/big"
)

// The arithmetic of docs/contract-cuda.md on single values. The conversions to
// float32 are not decoration: without them Go may fuse a product and a sum.

func bits(f float32) uint32         { return math.Float32bits(f) }
func fromBits(u uint32) float32     { return math.Float32frombits(u) }
func add(a, b float32) float32      { return float32(a + b) }
func sub(a, b float32) float32      { return float32(a - b) }
func mul(a, b float32) float32      { return float32(a * b) }
func div(a, b float32) float32      { return float32(a / b) }
func sqrt(a float32) float32        { return float32(math.Sqrt(float64(a))) }
func isNaN(f float32) bool          { return f != f } //nolint:gocritic // the definition
func nearestEven(f float32) float32 { return float32(math.RoundToEven(float64(f))) }

// fma is a*b + c rounded once. The product is exact in float64. The float64
// sum may be rounded, which shows in the result only when it lands next to the
// middle of two float32 values; those cases go through exact arithmetic.
func fma(a, b, c float32) float32 {
	p, z := float64(a)*float64(b), float64(c)
	s := p + z
	if math.IsNaN(s) || math.IsInf(s, 0) || s == 0 {
		return float32(s)
	}
	if math.Abs(s) > 0x1p-100 && math.Float64bits(s)&0x1fffffff != 0x10000000 {
		return float32(s)
	}
	exact := new(big.Float).SetPrec(2000).SetFloat64(p)
	exact.Add(exact, new(big.Float).SetPrec(2000).SetFloat64(z))
	f, _ := exact.Float32()
	return f
}

// A dtype is one of the header's enum.
type dtype int64

const (
	f32 dtype = iota
	bf16
	f16
)

func (d dtype) String() string { return [...]string{"float32", "bfloat16", "float16"}[d] }

func (d dtype) size() int {
	if d == f32 {
		return 4
	}
	return 2
}

// widen is the value of the stored bits u.
func (d dtype) widen(u uint32) float32 {
	switch d {
	case bf16:
		return fromBits(u << 16)
	case f16:
		return widenHalf(u)
	}
	return fromBits(u)
}

func widenHalf(u uint32) float32 {
	e, m := int(u>>10&31), float64(u&1023)
	v := math.Ldexp(m, -24)
	switch {
	case e == 31 && m != 0:
		v = math.NaN()
	case e == 31:
		v = math.Inf(1)
	case e > 0:
		v = math.Ldexp(1024+m, e-25)
	}
	if u>>15 == 1 {
		v = math.Copysign(v, -1)
	}
	return float32(v)
}

// narrow is the bits that store f: rounded once, NaN canonical.
func (d dtype) narrow(f float32) uint32 {
	if isNaN(f) {
		return [...]uint32{0x7fc00000, 0x7fc0, 0x7e00}[d]
	}
	u := bits(f)
	switch d {
	case bf16:
		return (u + 0x7fff + u>>16&1) >> 16
	case f16:
		sign, a := u>>16&0x8000, math.Abs(float64(f))
		switch {
		case a >= 65520:
			return sign | 0x7c00
		case a < 0x1p-14:
			return sign | uint32(math.RoundToEven(a*0x1p24))
		}
		m, e := math.Frexp(a)
		return sign | uint32((e+13)*1024+int(math.RoundToEven(m*2048)))
	}
	return u
}
