// "Vectors" of one float: the plainest level of an architecture whose every machine
// has a fused multiply-add instruction. It checks the vector levels.
#pragma once

#include "half.h"

#if !defined(__FP_FAST_FMAF)
#error "this architecture has no fused multiply-add instruction: give it a softfma"
#endif

namespace {

typedef float vf;
constexpr int VL = 1;
#define INVAR_TILE_ROWS 4
constexpr int kTileRows = INVAR_TILE_ROWS;
constexpr int tile_vectors(int) { return 4; }

inline vf load(const void *p) { return *static_cast<const float_any *>(p); }
inline void store(void *p, vf v) { *static_cast<float_any *>(p) = v; }
inline vf splat(float x) { return x; }
inline vf fma(vf a, vf b, vf c) { return __builtin_fmaf(a, b, c); }
inline vf add(vf a, vf b) { return a + b; }
inline vf sub(vf a, vf b) { return a - b; }
inline vf mul(vf a, vf b) { return a * b; }
inline vf max(vf a, vf b) { return a > b ? a : b; }  // b where one is NaN
// |a| < 2^22: the sum has no room for a fraction
inline vf nearest(vf a) {
  const float magic = 12582912.0f;
  return (a + magic) - magic;
}
// p * 2^n for whole n in [-126, 127]; any n where p is NaN
inline vf scale(vf p, vf n) {
  int32_t e = n >= -126.0f && n <= 127.0f ? int32_t(n) : 0;
  return p * float_of(uint32_t(e + 127) << 23);
}
// +0 where x < low, else v
inline vf zero_below(vf x, vf low, vf v) { return x < low ? 0.0f : v; }
inline vf canonical(vf v) { return canonical1(v); }

inline float fold(vf v) { return v; }
inline float largest(vf v) { return v; }

inline float fma1(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
inline float from_f16(uint16_t h) { return from_f16_bits(h); }
inline uint16_t to_f16(float f) { return to_f16_bits(f); }
inline vf load_bf16(const void *p) { return from_bf16(*static_cast<const half_any *>(p)); }
inline vf load_f16(const void *p) { return from_f16(*static_cast<const half_any *>(p)); }
inline void store_bf16(void *p, vf v) { *static_cast<half_any *>(p) = to_bf16(v); }
inline void store_f16(void *p, vf v) { *static_cast<half_any *>(p) = to_f16(v); }

inline void transpose(const float_any *from, int64_t, float *to, int64_t) { *to = *from; }

}  // namespace
