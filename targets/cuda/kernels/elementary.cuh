// exp and log. docs/contract.md states them step by step, and docs/contract-cuda.md
// takes them over: the machine's approximations have no say.
#pragma once

#include "device.cuh"

namespace invar {

// exp of x, for x <= 0 or NaN. +0 below log(2^-126): no denormal comes out.
// 2^n * e^r with n = nearest(x / log 2) and |r| <= log(2)/2, log 2 in two parts.
INVAR_DEVICE float exp_nonpositive(float x) {
  const float low = -87.33654f, magic = 12582912.0f;  // 1.5 * 2^23: no room for a fraction
  const float y = x < low ? low : x;
  const float n = sub(add(mul(y, 1.44269504f), magic), magic);
  float r = fused(n, -0.693359375f, y);
  r = fused(n, 2.12194440e-4f, r);
  float p = 1.9875691500e-4f;
  p = fused(p, r, 1.3981999507e-3f);
  p = fused(p, r, 8.3334519073e-3f);
  p = fused(p, r, 4.1665795894e-2f);
  p = fused(p, r, 1.6666665459e-1f);
  p = fused(p, r, 5.0000001201e-1f);
  p = add(fused(p, mul(r, r), r), 1.0f);
  const int32_t e = n >= -126.0f && n <= 127.0f ? static_cast<int32_t>(n) : 0;
  const float scaled = mul(p, float_of(static_cast<uint32_t>(e + 127) << 23));
  return x < low ? 0.0f : scaled;
}

// log of s, for s >= 1 or NaN. s = 2^e * (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)).
INVAR_DEVICE float log_of_sum(float s) {
  if (is_nan(s)) return float_of(kNaN32);
  const uint32_t u = bits_of(s);
  int32_t exponent = static_cast<int32_t>(u >> 23) - 126;
  const float m = float_of((u & 0x007fffffU) | 0x3f000000U);  // [1/2, 1)
  float f = sub(m, 1.0f);
  if (m < 0.707106769f) {
    exponent -= 1;
    f = sub(add(m, m), 1.0f);
  }
  const float e = static_cast<float>(exponent), z = mul(f, f);
  float p = 7.0376836292e-2f;
  p = fused(p, f, -1.1514610310e-1f);
  p = fused(p, f, 1.1676998740e-1f);
  p = fused(p, f, -1.2420140846e-1f);
  p = fused(p, f, 1.4249322787e-1f);
  p = fused(p, f, -1.6668057665e-1f);
  p = fused(p, f, 2.0000714765e-1f);
  p = fused(p, f, -2.4999993993e-1f);
  p = fused(p, f, 3.3333331174e-1f);
  float y = mul(mul(f, z), p);
  y = fused(e, -2.12194440e-4f, y);
  y = fused(z, -0.5f, y);
  return fused(e, 0.693359375f, add(f, y));
}

}  // namespace invar
