// exp and log. docs/contract.md states them step by step; libm has no say.
#pragma once

#include "half.h"

namespace {

// exp of x, for x <= 0 or NaN. +0 below log(2^-126): no denormal comes out.
// 2^n * e^r with n = nearest(x / log 2) and |r| <= log(2)/2, log 2 in two parts.
inline vf exp_nonpositive(vf x) {
  const vf low = splat(-87.33654f);
  vf y = max(low, x);
  vf n = nearest(mul(y, splat(1.44269504f)));
  vf r = fma(n, splat(-0.693359375f), y);
  r = fma(n, splat(2.12194440e-4f), r);
  vf p = splat(1.9875691500e-4f);
  p = fma(p, r, splat(1.3981999507e-3f));
  p = fma(p, r, splat(8.3334519073e-3f));
  p = fma(p, r, splat(4.1665795894e-2f));
  p = fma(p, r, splat(1.6666665459e-1f));
  p = fma(p, r, splat(5.0000001201e-1f));
  p = add(fma(p, mul(r, r), r), splat(1.0f));
  return zero_below(x, low, scale(p, n));
}

// log of s, for s >= 1 or NaN. s = 2^e * (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)).
inline float log_of_sum(float s) {
  uint32_t u = bits_of(s);
  if (is_nan_bits(u)) return float_of(kNaN32);
  int32_t exponent = int32_t(u >> 23) - 126;
  float m = float_of((u & 0x007fffff) | 0x3f000000);  // [1/2, 1)
  float f = m - 1.0f;
  if (m < 0.707106769f) {
    exponent -= 1;
    f = (m + m) - 1.0f;
  }
  float e = float(exponent), z = f * f;
  float p = 7.0376836292e-2f;
  p = fma1(p, f, -1.1514610310e-1f);
  p = fma1(p, f, 1.1676998740e-1f);
  p = fma1(p, f, -1.2420140846e-1f);
  p = fma1(p, f, 1.4249322787e-1f);
  p = fma1(p, f, -1.6668057665e-1f);
  p = fma1(p, f, 2.0000714765e-1f);
  p = fma1(p, f, -2.4999993993e-1f);
  p = fma1(p, f, 3.3333331174e-1f);
  float y = (f * z) * p;
  y = fma1(e, -2.12194440e-4f, y);
  y = fma1(z, -0.5f, y);
  return fma1(e, 0.693359375f, f + y);
}

}  // namespace
