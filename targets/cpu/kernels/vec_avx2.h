// Vectors of 8 floats: AVX2, FMA and F16C.
#pragma once

#include <immintrin.h>

#include "half.h"

#if !defined(__AVX2__) || !defined(__FMA__) || !defined(__F16C__)
#error "compile this level with -mavx2 -mfma -mf16c"
#endif

namespace {

typedef __m256 vf;
constexpr int VL = 8;
#define INVAR_TILE_ROWS 6
constexpr int kTileRows = INVAR_TILE_ROWS;  // 6 rows x 2 vectors: 12 of 16 registers accumulate
constexpr int tile_vectors(int rows) { return rows == 1 ? 8 : rows <= 3 ? 4 : 2; }

inline vf load(const void *p) { return _mm256_loadu_ps(static_cast<const float *>(p)); }
inline void store(void *p, vf v) { _mm256_storeu_ps(static_cast<float *>(p), v); }
inline vf splat(float x) { return _mm256_set1_ps(x); }
inline vf fma(vf a, vf b, vf c) { return _mm256_fmadd_ps(a, b, c); }
inline vf add(vf a, vf b) { return _mm256_add_ps(a, b); }
inline vf sub(vf a, vf b) { return _mm256_sub_ps(a, b); }
inline vf mul(vf a, vf b) { return _mm256_mul_ps(a, b); }
inline vf max(vf a, vf b) { return _mm256_max_ps(a, b); }  // b where one is NaN
inline vf nearest(vf a) {
  return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
// p * 2^n for whole n in [-126, 127]
inline vf scale(vf p, vf n) {
  __m256i e = _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127));
  return _mm256_mul_ps(p, _mm256_castsi256_ps(_mm256_slli_epi32(e, 23)));
}
// +0 where x < low, else v
inline vf zero_below(vf x, vf low, vf v) {
  return _mm256_and_ps(_mm256_cmp_ps(x, low, _CMP_NLT_UQ), v);
}
inline vf canonical(vf v) {
  return _mm256_blendv_ps(v, _mm256_castsi256_ps(_mm256_set1_epi32(int(kNaN32))),
                          _mm256_cmp_ps(v, v, _CMP_UNORD_Q));
}

// lane i + lane i+h for h = 4, 2, 1
inline float fold(vf v) {
  __m128 b = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  __m128 c = _mm_add_ps(b, _mm_movehl_ps(b, b));
  return _mm_cvtss_f32(_mm_add_ss(c, _mm_movehdup_ps(c)));
}
inline float largest(vf v) {  // any lane where one is NaN
  __m128 b = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  __m128 c = _mm_max_ps(b, _mm_movehl_ps(b, b));
  return _mm_cvtss_f32(_mm_max_ss(c, _mm_movehdup_ps(c)));
}

inline vf load_bf16(const void *p) {
  __m128i h = _mm_loadu_si128(static_cast<const __m128i *>(p));
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 16));
}
inline vf load_f16(const void *p) {
  return _mm256_cvtph_ps(_mm_loadu_si128(static_cast<const __m128i *>(p)));
}
// v holds no NaN but the canonical one
inline void store_bf16(void *p, vf v) {
  __m256i u = _mm256_castps_si256(v);
  __m256i odd = _mm256_and_si256(_mm256_srli_epi32(u, 16), _mm256_set1_epi32(1));
  u = _mm256_add_epi32(u, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
  u = _mm256_srli_epi32(u, 16);
  u = _mm256_permute4x64_epi64(_mm256_packus_epi32(u, u), 0x08);
  _mm_storeu_si128(static_cast<__m128i *>(p), _mm256_castsi256_si128(u));
}
inline void store_f16(void *p, vf v) {
  _mm_storeu_si128(static_cast<__m128i *>(p), _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
}

inline float fma1(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
inline float from_f16(uint16_t h) { return _cvtsh_ss(h); }
inline uint16_t to_f16(float f) { return to_f16_bits(f); }

// 16 bfloat16 in two steps: an even column is a shift, an odd one a mask. The
// accumulators then hold columns in that order until they go to memory.
#define INVAR_BF16_PAIRS 1
inline void load_bf16_pair(const void *p, vf &even, vf &odd) {
  __m256i h = _mm256_loadu_si256(static_cast<const __m256i *>(p));
  even = _mm256_castsi256_ps(_mm256_slli_epi32(h, 16));
  odd = _mm256_castsi256_ps(_mm256_and_si256(h, _mm256_set1_epi32(int(0xffff0000))));
}
inline void split_pair(vf &a, vf &b) {
  __m256 l = _mm256_permute2f128_ps(a, b, 0x20), h = _mm256_permute2f128_ps(a, b, 0x31);
  a = _mm256_shuffle_ps(l, h, 0x88);
  b = _mm256_shuffle_ps(l, h, 0xdd);
}
inline void join_pair(vf &even, vf &odd) {
  __m256 l = _mm256_unpacklo_ps(even, odd), h = _mm256_unpackhi_ps(even, odd);
  even = _mm256_permute2f128_ps(l, h, 0x20);
  odd = _mm256_permute2f128_ps(l, h, 0x31);
}

// to[j*to_ld + i] = from[i*ld + j] for i, j < 8. Each row is read with one load: rows
// often lie a power of two apart and would push each other out of the cache.
inline void transpose(const float_any *from, int64_t ld, float *to, int64_t to_ld) {
  vf r[8], t[8];
  for (int i = 0; i < 8; i++) r[i] = load(from + i * ld);
  for (int i = 0; i < 8; i += 4) {  // 4 x 4 inside the halves
    vf a = _mm256_unpacklo_ps(r[i], r[i + 1]), b = _mm256_unpackhi_ps(r[i], r[i + 1]);
    vf c = _mm256_unpacklo_ps(r[i + 2], r[i + 3]), d = _mm256_unpackhi_ps(r[i + 2], r[i + 3]);
    t[i] = _mm256_shuffle_ps(a, c, 0x44), t[i + 1] = _mm256_shuffle_ps(a, c, 0xee);
    t[i + 2] = _mm256_shuffle_ps(b, d, 0x44), t[i + 3] = _mm256_shuffle_ps(b, d, 0xee);
  }
  for (int j = 0; j < 4; j++) {
    store(to + j * to_ld, _mm256_permute2f128_ps(t[j], t[4 + j], 0x20));
    store(to + (4 + j) * to_ld, _mm256_permute2f128_ps(t[j], t[4 + j], 0x31));
  }
}

}  // namespace
