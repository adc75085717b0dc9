package kernels

import "math"

// What each operator computes, written from docs/contract.md: plain loops over
// float32 values, one element at a time.

// dot is the chain of an element of a matrix product.
func dot(a, b []float32) float32 {
	var acc float32
	for i := range a {
		acc = fma(a[i], b[i], acc)
	}
	return acc
}

// finish is the step after the chain.
func finish(acc, alpha, beta float32, c float32, hasC bool) float32 {
	v := mul(alpha, acc)
	if hasC && beta != 0 {
		v = add(v, mul(beta, c))
	}
	return v
}

// lanes adds the values up in 64 lanes and folds the lanes.
func lanes(n int, step func(lane float32, i int) float32) float32 {
	var l [64]float32
	for i := range n {
		l[i%64] = step(l[i%64], i)
	}
	for h := 32; h >= 1; h /= 2 {
		for i := range h {
			l[i] = add(l[i], l[i+h])
		}
	}
	return l[0]
}

func sumOf(x []float32) float32 {
	return lanes(len(x), func(l float32, i int) float32 { return add(l, x[i]) })
}

func meanOf(x []float32) float32 { return div(sumOf(x), float32(len(x))) }

// exp is exp(x) for x <= 0.
func exp(x float32) float32 {
	const lowest = -87.33654
	if isNaN(x) {
		return x
	}
	if x < lowest {
		return 0
	}
	n := nearestEven(mul(x, 1.44269504))
	r := fma(n, -0.693359375, x)
	r = fma(n, 2.12194440e-4, r)
	p := float32(1.9875691500e-4)
	for _, c := range []float32{
		1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1,
	} {
		p = fma(p, r, c)
	}
	p = add(fma(p, mul(r, r), r), 1)
	return mul(p, float32(math.Ldexp(1, int(n))))
}

// log is log(s) for s >= 1.
func log(s float32) float32 {
	if isNaN(s) {
		return s
	}
	half, exponent := math.Frexp(float64(s)) // s = half * 2^exponent, half in [1/2, 1)
	m := float32(half)
	f := sub(m, 1)
	if m < 0.707106769 {
		exponent--
		f = sub(add(m, m), 1)
	}
	e, z := float32(exponent), mul(f, f)
	p := float32(7.0376836292e-2)
	for _, c := range []float32{
		-1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1,
		-1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1,
	} {
		p = fma(p, f, c)
	}
	y := mul(mul(f, z), p)
	y = fma(e, -2.12194440e-4, y)
	y = fma(z, -0.5, y)
	return fma(e, 0.693359375, add(f, y))
}

// top is the largest value; a zero counts as +0. Any NaN makes it NaN here,
// which the contract allows: the row is NaN in any case.
func top(x []float32) float32 {
	m := float32(math.Inf(-1))
	for _, v := range x {
		if isNaN(v) {
			return v
		}
		m = max(m, v)
	}
	if m == 0 {
		return 0
	}
	return m
}

func softmax(x []float32) []float32 {
	t, out := top(x), make([]float32, len(x))
	for i, v := range x {
		out[i] = exp(sub(v, t))
	}
	inverse := div(1, sumOf(out))
	for i := range out {
		out[i] = mul(out[i], inverse)
	}
	return out
}

func logSoftmax(x []float32) []float32 {
	t, out := top(x), make([]float32, len(x))
	for i, v := range x {
		out[i] = exp(sub(v, t))
	}
	l := log(sumOf(out))
	for i, v := range x {
		out[i] = sub(sub(v, t), l)
	}
	return out
}

// rmsNorm takes a nil weight for none.
func rmsNorm(x, weight []float32, eps float32) []float32 {
	squares := lanes(len(x), func(l float32, i int) float32 { return fma(x[i], x[i], l) })
	scale := div(1, sqrt(add(div(squares, float32(len(x))), eps)))
	out := make([]float32, len(x))
	for i, v := range x {
		out[i] = mul(v, scale)
		if weight != nil {
			out[i] = mul(out[i], weight[i])
		}
	}
	return out
}
