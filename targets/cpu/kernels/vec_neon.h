// Vectors of 4 floats: Advanced SIMD, which every aarch64 has.
#pragma once

#include <arm_neon.h>

#include "half.h"

namespace {

typedef float32x4_t vf;
constexpr int VL = 4;
#define INVAR_TILE_ROWS 6
constexpr int kTileRows = INVAR_TILE_ROWS;  // 6 rows x 4 vectors: 24 of 32 registers accumulate
constexpr int tile_vectors(int rows) { return rows == 1 ? 16 : rows <= 3 ? 8 : 4; }

// Loads go by bytes: the element forms may trap on odd addresses under strict
// alignment checking.
inline vf load(const void *p) { return vreinterpretq_f32_u8(vld1q_u8((const uint8_t *)p)); }
inline void store(void *p, vf v) { vst1q_u8((uint8_t *)p, vreinterpretq_u8_f32(v)); }
inline vf splat(float x) { return vdupq_n_f32(x); }
inline vf fma(vf a, vf b, vf c) { return vfmaq_f32(c, a, b); }
inline vf add(vf a, vf b) { return vaddq_f32(a, b); }
inline vf sub(vf a, vf b) { return vsubq_f32(a, b); }
inline vf mul(vf a, vf b) { return vmulq_f32(a, b); }
inline vf max(vf a, vf b) { return vmaxq_f32(a, b); }  // NaN where one is NaN
inline vf nearest(vf a) { return vrndnq_f32(a); }
// p * 2^n for whole n in [-126, 127]
inline vf scale(vf p, vf n) {
  int32x4_t e = vaddq_s32(vcvtnq_s32_f32(n), vdupq_n_s32(127));
  return vmulq_f32(p, vreinterpretq_f32_s32(vshlq_n_s32(e, 23)));
}
// +0 where x < low, else v
inline vf zero_below(vf x, vf low, vf v) {
  return vreinterpretq_f32_u32(vbicq_u32(vreinterpretq_u32_f32(v), vcltq_f32(x, low)));
}
inline vf canonical(vf v) {
  return vbslq_f32(vceqq_f32(v, v), v, vreinterpretq_f32_u32(vdupq_n_u32(kNaN32)));
}

// lane i + lane i+h for h = 2, 1
inline float fold(vf v) {
  float32x2_t c = vadd_f32(vget_low_f32(v), vget_high_f32(v));
  return vget_lane_f32(c, 0) + vget_lane_f32(c, 1);
}
inline float largest(vf v) { return vmaxvq_f32(v); }  // NaN where one is NaN

inline uint16x4_t load_half(const void *p) {
  return vreinterpret_u16_u8(vld1_u8((const uint8_t *)p));
}
inline void store_half(void *p, uint16x4_t h) { vst1_u8((uint8_t *)p, vreinterpret_u8_u16(h)); }
inline vf load_bf16(const void *p) {
  return vreinterpretq_f32_u32(vshll_n_u16(load_half(p), 16));
}
inline vf load_f16(const void *p) { return vcvt_f32_f16(vreinterpret_f16_u16(load_half(p))); }
// v holds no NaN but the canonical one
inline void store_bf16(void *p, vf v) {
  uint32x4_t u = vreinterpretq_u32_f32(v);
  uint32x4_t odd = vandq_u32(vshrq_n_u32(u, 16), vdupq_n_u32(1));
  store_half(p, vshrn_n_u32(vaddq_u32(u, vaddq_u32(odd, vdupq_n_u32(0x7fff))), 16));
}
inline void store_f16(void *p, vf v) { store_half(p, vreinterpret_u16_f16(vcvt_f16_f32(v))); }

inline float fma1(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
inline float from_f16(uint16_t h) { return from_f16_bits(h); }
inline uint16_t to_f16(float f) { return to_f16_bits(f); }

// to[j*to_ld + i] = from[i*ld + j] for i, j < 4
inline void transpose(const float_any *from, int64_t ld, float *to, int64_t to_ld) {
  float32x4x2_t a = vtrnq_f32(load(from), load(from + ld));
  float32x4x2_t b = vtrnq_f32(load(from + 2 * ld), load(from + 3 * ld));
  store(to, vcombine_f32(vget_low_f32(a.val[0]), vget_low_f32(b.val[0])));
  store(to + to_ld, vcombine_f32(vget_low_f32(a.val[1]), vget_low_f32(b.val[1])));
  store(to + 2 * to_ld, vcombine_f32(vget_high_f32(a.val[0]), vget_high_f32(b.val[0])));
  store(to + 3 * to_ld, vcombine_f32(vget_high_f32(a.val[1]), vget_high_f32(b.val[1])));
}

}  // namespace
