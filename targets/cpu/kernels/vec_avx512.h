// Vectors of 16 floats: AVX-512 F, BW, DQ and VL.
#pragma once

#include <immintrin.h>

#include "half.h"

#if !defined(__AVX512F__) || !defined(__AVX512BW__) || !defined(__AVX512DQ__) || \
    !defined(__AVX512VL__)
#error "compile this level with -mavx512f -mavx512bw -mavx512dq -mavx512vl"
#endif

namespace {

typedef __m512 vf;
constexpr int VL = 16;
#define INVAR_TILE_ROWS 6
constexpr int kTileRows = INVAR_TILE_ROWS;  // 6 rows x 4 vectors: 24 of 32 registers accumulate
constexpr int tile_vectors(int) { return 4; }

inline vf load(const void *p) { return _mm512_loadu_ps(p); }
inline void store(void *p, vf v) { _mm512_storeu_ps(p, v); }
inline vf splat(float x) { return _mm512_set1_ps(x); }
inline vf fma(vf a, vf b, vf c) { return _mm512_fmadd_ps(a, b, c); }
inline vf add(vf a, vf b) { return _mm512_add_ps(a, b); }
inline vf sub(vf a, vf b) { return _mm512_sub_ps(a, b); }
inline vf mul(vf a, vf b) { return _mm512_mul_ps(a, b); }
inline vf max(vf a, vf b) { return _mm512_max_ps(a, b); }  // b where one is NaN
inline vf nearest(vf a) {
  return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
// p * 2^n for whole n in [-126, 127]
inline vf scale(vf p, vf n) {
  return _mm512_scalef_ps(p, n);
}
// +0 where x < low, else v
inline vf zero_below(vf x, vf low, vf v) {
  return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x, low, _CMP_NLT_UQ), v);
}
inline vf canonical(vf v) {
  return _mm512_mask_mov_ps(v, _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q),
                            _mm512_castsi512_ps(_mm512_set1_epi32(int(kNaN32))));
}

// lane i + lane i+h for h = 8, 4, 2, 1. What the upper lanes hold is not looked at.
inline float fold(vf v) {
  v = add(v, _mm512_shuffle_f32x4(v, v, 0xee));
  v = add(v, _mm512_shuffle_f32x4(v, v, 0x55));
  v = add(v, _mm512_permute_ps(v, 0xee));
  return _mm512_cvtss_f32(add(v, _mm512_permute_ps(v, 0x55)));
}
inline float largest(vf v) {  // any lane where one is NaN
  v = max(v, _mm512_shuffle_f32x4(v, v, 0xee));
  v = max(v, _mm512_shuffle_f32x4(v, v, 0x55));
  v = max(v, _mm512_permute_ps(v, 0xee));
  return _mm512_cvtss_f32(max(v, _mm512_permute_ps(v, 0x55)));
}

// n < 16 elements, the other lanes filled up
inline vf load_some(const void *p, int64_t n, float fill) {
  return _mm512_mask_loadu_ps(splat(fill), __mmask16((1u << n) - 1), p);
}
inline void store_some(void *p, int64_t n, vf v) {
  _mm512_mask_storeu_ps(p, __mmask16((1u << n) - 1), v);
}

inline vf load_bf16(const void *p) {
  __m256i h = _mm256_loadu_si256(static_cast<const __m256i *>(p));
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(h), 16));
}
inline vf load_f16(const void *p) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(static_cast<const __m256i *>(p)));
}
// v holds no NaN but the canonical one
inline void store_bf16(void *p, vf v) {
  __m512i u = _mm512_castps_si512(v);
  __m512i odd = _mm512_and_si512(_mm512_srli_epi32(u, 16), _mm512_set1_epi32(1));
  u = _mm512_add_epi32(u, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
  _mm256_storeu_si256(static_cast<__m256i *>(p), _mm512_cvtepi32_epi16(_mm512_srli_epi32(u, 16)));
}
inline void store_f16(void *p, vf v) {
  _mm256_storeu_si256(static_cast<__m256i *>(p),
                      _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}

inline float fma1(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
inline float from_f16(uint16_t h) { return _cvtsh_ss(h); }
inline uint16_t to_f16(float f) { return to_f16_bits(f); }

// 32 bfloat16 in two steps: an even column is a shift, an odd one a mask. The
// accumulators then hold columns in that order until they go to memory.
#define INVAR_BF16_PAIRS 1
inline void load_bf16_pair(const void *p, vf &even, vf &odd) {
  __m512i h = _mm512_loadu_si512(p);
  even = _mm512_castsi512_ps(_mm512_slli_epi32(h, 16));
  odd = _mm512_castsi512_ps(_mm512_and_si512(h, _mm512_set1_epi32(int(0xffff0000))));
}
inline void split_pair(vf &a, vf &b) {
  const __m512i e = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  const __m512i o = _mm512_add_epi32(e, _mm512_set1_epi32(1));
  vf even = _mm512_permutex2var_ps(a, e, b), odd = _mm512_permutex2var_ps(a, o, b);
  a = even, b = odd;
}
inline void join_pair(vf &even, vf &odd) {
  const __m512i l = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  const __m512i h = _mm512_add_epi32(l, _mm512_set1_epi32(8));
  vf a = _mm512_permutex2var_ps(even, l, odd), b = _mm512_permutex2var_ps(even, h, odd);
  even = a, odd = b;
}

// to[j*to_ld + i] = from[i*ld + j] for i, j < 16. Each row is read with one load: the
// rows of a weight often lie a power of two apart, and sixteen lines of one cache set
// would not outlive a second visit.
inline void transpose(const float_any *from, int64_t ld, float *to, int64_t to_ld) {
  vf r[16], t[16];
  for (int i = 0; i < 16; i++) r[i] = load(from + i * ld);
  for (int i = 0; i < 16; i += 4) {  // 4 x 4 inside the quarters
    vf a = _mm512_unpacklo_ps(r[i], r[i + 1]), b = _mm512_unpackhi_ps(r[i], r[i + 1]);
    vf c = _mm512_unpacklo_ps(r[i + 2], r[i + 3]), d = _mm512_unpackhi_ps(r[i + 2], r[i + 3]);
    t[i] = _mm512_shuffle_ps(a, c, 0x44), t[i + 1] = _mm512_shuffle_ps(a, c, 0xee);
    t[i + 2] = _mm512_shuffle_ps(b, d, 0x44), t[i + 3] = _mm512_shuffle_ps(b, d, 0xee);
  }
  for (int j = 0; j < 4; j++) {  // 4 x 4 of the quarters: column 4q + j from quarter q
    vf a = _mm512_shuffle_f32x4(t[j], t[4 + j], 0x44), b = _mm512_shuffle_f32x4(t[j], t[4 + j], 0xee);
    vf c = _mm512_shuffle_f32x4(t[8 + j], t[12 + j], 0x44);
    vf d = _mm512_shuffle_f32x4(t[8 + j], t[12 + j], 0xee);
    store(to + (0 + j) * to_ld, _mm512_shuffle_f32x4(a, c, 0x88));
    store(to + (4 + j) * to_ld, _mm512_shuffle_f32x4(a, c, 0xdd));
    store(to + (8 + j) * to_ld, _mm512_shuffle_f32x4(b, d, 0x88));
    store(to + (12 + j) * to_ld, _mm512_shuffle_f32x4(b, d, 0xdd));
  }
}

}  // namespace
