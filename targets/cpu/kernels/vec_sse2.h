// Vectors of 4 floats: SSE2, which every x86-64 has. Fused multiply-adds are made of
// double arithmetic.
#pragma once

#include <emmintrin.h>

#include "half.h"
#include "softfma.h"

namespace {

typedef __m128 vf;
constexpr int VL = 4;
#define INVAR_TILE_ROWS 2
constexpr int kTileRows = INVAR_TILE_ROWS;  // few: one fused multiply-add takes most registers
constexpr int tile_vectors(int) { return 2; }

inline vf load(const void *p) { return _mm_loadu_ps(static_cast<const float *>(p)); }
inline void store(void *p, vf v) { _mm_storeu_ps(static_cast<float *>(p), v); }
inline vf splat(float x) { return _mm_set1_ps(x); }
inline vf fma(vf a, vf b, vf c) { return soft_fma(a, b, c); }
inline vf add(vf a, vf b) { return _mm_add_ps(a, b); }
inline vf sub(vf a, vf b) { return _mm_sub_ps(a, b); }
inline vf mul(vf a, vf b) { return _mm_mul_ps(a, b); }
inline vf max(vf a, vf b) { return _mm_max_ps(a, b); }  // b where one is NaN
inline vf nearest(vf a) { return _mm_cvtepi32_ps(_mm_cvtps_epi32(a)); }  // |a| < 2^31
// p * 2^n for whole n in [-126, 127]
inline vf scale(vf p, vf n) {
  __m128i e = _mm_add_epi32(_mm_cvtps_epi32(n), _mm_set1_epi32(127));
  return _mm_mul_ps(p, _mm_castsi128_ps(_mm_slli_epi32(e, 23)));
}
// +0 where x < low, else v
inline vf zero_below(vf x, vf low, vf v) { return _mm_and_ps(_mm_cmpnlt_ps(x, low), v); }
inline vf canonical(vf v) {
  __m128 nan = _mm_cmpunord_ps(v, v), one = _mm_castsi128_ps(_mm_set1_epi32(int(kNaN32)));
  return _mm_or_ps(_mm_andnot_ps(nan, v), _mm_and_ps(nan, one));
}

// lane i + lane i+h for h = 2, 1
inline float fold(vf v) {
  __m128 c = _mm_add_ps(v, _mm_movehl_ps(v, v));
  return _mm_cvtss_f32(_mm_add_ss(c, _mm_shuffle_ps(c, c, 1)));
}
inline float largest(vf v) {  // any lane where one is NaN
  __m128 c = _mm_max_ps(v, _mm_movehl_ps(v, v));
  return _mm_cvtss_f32(_mm_max_ss(c, _mm_shuffle_ps(c, c, 1)));
}

inline vf load_bf16(const void *p) {
  __m128i h = _mm_loadl_epi64(static_cast<const __m128i *>(p));
  return _mm_castsi128_ps(_mm_unpacklo_epi16(_mm_setzero_si128(), h));
}
inline float from_f16(uint16_t h) { return from_f16_bits(h); }
inline uint16_t to_f16(float f) { return to_f16_bits(f); }
inline vf load_f16(const void *p) {
  const half_any *h = static_cast<const half_any *>(p);
  return _mm_setr_ps(from_f16(h[0]), from_f16(h[1]), from_f16(h[2]), from_f16(h[3]));
}
inline void store_bf16(void *p, vf v) {
  half_any *h = static_cast<half_any *>(p);
  float f[4];
  store(f, v);
  for (int i = 0; i < 4; i++) h[i] = to_bf16(f[i]);
}
inline void store_f16(void *p, vf v) {
  half_any *h = static_cast<half_any *>(p);
  float f[4];
  store(f, v);
  for (int i = 0; i < 4; i++) h[i] = to_f16(f[i]);
}

inline float fma1(float a, float b, float c) { return soft_fma1(a, b, c); }

// to[j*to_ld + i] = from[i*ld + j] for i, j < 4
inline void transpose(const float_any *from, int64_t ld, float *to, int64_t to_ld) {
  vf r0 = load(from), r1 = load(from + ld), r2 = load(from + 2 * ld), r3 = load(from + 3 * ld);
  _MM_TRANSPOSE4_PS(r0, r1, r2, r3);
  store(to, r0), store(to + to_ld, r1), store(to + 2 * to_ld, r2), store(to + 3 * to_ld, r3);
}

}  // namespace
