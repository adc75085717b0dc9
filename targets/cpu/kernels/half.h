// float32 from and to bfloat16 and float16, one value at a time, with integers only.
// The vector forms of vec_*.h give the same bits.
#pragma once

#include <stdint.h>

namespace {

// Operands may lie at any address: these types promise the compiler nothing.
typedef float float_any __attribute__((aligned(1), may_alias));
typedef uint16_t half_any __attribute__((aligned(1), may_alias));

constexpr uint32_t kNaN32 = 0x7fc00000;

inline uint32_t bits_of(float f) {
  uint32_t u;
  __builtin_memcpy(&u, &f, 4);
  return u;
}

inline float float_of(uint32_t u) {
  float f;
  __builtin_memcpy(&f, &u, 4);
  return f;
}

inline bool is_nan_bits(uint32_t u) { return (u & 0x7fffffff) > 0x7f800000; }

inline float canonical1(float f) { return is_nan_bits(bits_of(f)) ? float_of(kNaN32) : f; }

inline float from_bf16(uint16_t h) { return float_of(uint32_t(h) << 16); }

inline uint16_t to_bf16(float f) {
  uint32_t u = bits_of(f);
  if (is_nan_bits(u)) return 0x7fc0;
  return uint16_t((u + 0x7fff + ((u >> 16) & 1)) >> 16);
}

inline float from_f16_bits(uint16_t h) {
  uint32_t sign = uint32_t(h & 0x8000) << 16, e = (h >> 10) & 31, m = h & 0x3ff;
  if (e == 31) return float_of(m ? kNaN32 : sign | 0x7f800000);
  if (e) return float_of(sign | ((e + 112) << 23) | (m << 13));
  if (!m) return float_of(sign);
  int up = __builtin_clz(m) - 21;  // brings the leading one to bit 10
  return float_of(sign | (uint32_t(113 - up) << 23) | ((m << up & 0x3ff) << 13));
}

inline uint16_t to_f16_bits(float f) {
  uint32_t u = bits_of(f), sign = (u >> 16) & 0x8000, a = u & 0x7fffffff;
  if (a > 0x7f800000) return 0x7e00;
  if (a >= 0x477ff000) return uint16_t(sign | 0x7c00);  // 65520 and up round to infinity
  if (a >= 0x38800000) {                                // normal in float16
    return uint16_t(sign | ((a + 0xfff + ((a >> 13) & 1) - 0x38000000) >> 13));
  }
  if (a <= 0x33000000) return uint16_t(sign);  // up to half of the smallest denormal
  uint32_t shift = 126 - (a >> 23), m = (a & 0x7fffff) | 0x800000;
  uint32_t q = m >> shift, rest = m & ((1u << shift) - 1), tie = 1u << (shift - 1);
  return uint16_t(sign | (q + (rest > tie || (rest == tie && (q & 1)))));
}

}  // namespace
