package cudakernels

import "math"

// What each operator computes, written from docs/contract-cuda.md: plain loops
// over float32 values, one element at a time.

// chunkOf is the length of a chunk of k.
func chunkOf(k int) int {
	even := (k + 15) / 16
	return max(512, (even+63)/64*64)
}

// A model is how 16 products are added to a float32 sum: by the contract for
// float32, by one of the emulator's stand-ins for an mma instruction elsewhere.
type model func(a, b []float32, d float32) float32

func chain(a, b []float32, d float32) float32 {
	for i := range a {
		d = fma(a[i], b[i], d)
	}
	return d
}

func wide(a, b []float32, d float32) float32 {
	var sum float64
	for i := range a {
		sum += float64(a[i]) * float64(b[i])
	}
	return float32(float64(d) + sum)
}

// product is an element of a matrix product before alpha: chunks of k, each
// from +0, added in ascending order. Pad fills a chunk up with zeros.
func product(a, b []float32, m model, pad bool) float32 {
	k, length := len(a), chunkOf(len(a))
	var total float32
	for from := 0; from == 0 || from < k; from += length {
		to := min(from+length, k)
		x, y := a[from:to:to], b[from:to:to]
		for pad && len(x)%64 != 0 {
			x, y = append(x, 0), append(y, 0)
		}
		var acc float32
		for i := 0; i < len(x); i += 16 {
			end := min(i+16, len(x))
			acc = m(x[i:end], y[i:end], acc)
		}
		if from == 0 {
			total = acc
		} else {
			total = add(total, acc)
		}
	}
	return total
}

// finish is the step after the product.
func finish(acc, alpha, beta, c float32, hasC bool) float32 {
	v := mul(alpha, acc)
	if hasC && beta != 0 {
		v = add(v, mul(beta, c))
	}
	return v
}

const (
	laneCount = 2048
	segment   = 16384
)

// lanes reduces one segment.
func lanes(x []float32, step func(lane, x float32) float32) float32 {
	l := make([]float32, laneCount)
	for i, v := range x {
		l[i%laneCount] = step(l[i%laneCount], v)
	}
	for len(l) > 1 {
		for i := range len(l) / 2 {
			l[i] = add(l[2*i], l[2*i+1])
		}
		l = l[:len(l)/2]
	}
	return l[0]
}

// reduce adds the segments up.
func reduce(x []float32, step func(lane, x float32) float32) float32 {
	total := lanes(x[:min(segment, len(x))], step)
	for from := segment; from < len(x); from += segment {
		total = add(total, lanes(x[from:min(from+segment, len(x))], step))
	}
	return total
}

func sumOf(x []float32) float32  { return reduce(x, add) }
func meanOf(x []float32) float32 { return div(sumOf(x), float32(len(x))) }

// exp is exp(x) for x <= 0.
func exp(x float32) float32 {
	if isNaN(x) {
		return x
	}
	if x < -87.33654 {
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

func expSum(x []float32, t float32) float32 {
	return reduce(x, func(lane, v float32) float32 { return add(lane, exp(sub(v, t))) })
}

func softmax(x []float32) []float32 {
	t, out := top(x), make([]float32, len(x))
	inverse := div(1, expSum(x, t))
	for i, v := range x {
		out[i] = mul(exp(sub(v, t)), inverse)
	}
	return out
}

func logSoftmax(x []float32) []float32 {
	t, out := top(x), make([]float32, len(x))
	l := log(expSum(x, t))
	for i, v := range x {
		out[i] = sub(sub(v, t), l)
	}
	return out
}

// rmsNorm takes a nil weight for none.
func rmsNorm(x, weight []float32, eps float32) []float32 {
	squares := reduce(x, func(lane, v float32) float32 { return fma(v, v, lane) })
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
