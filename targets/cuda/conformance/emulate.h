// What device.cuh and mma.cuh take where the compiler is not nvcc: the same sources
// then run on the host. Each thread of a block is a fiber; barriers, shuffles and
// warp-wide instructions hand over between fibers. emulate.cpp runs them.
#pragma once

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "params.h"

#define INVAR_DEVICE inline
#define INVAR_KERNEL(name, params, threads, blocks) extern "C" void name(const params &p)
#define INVAR_UNROLL
#define INVAR_FEW
#define INVAR_ROLLED
#define INVAR_SHARED(name) unsigned char *const name = invar::emulated::shared_memory()

namespace invar {
namespace emulated {

int thread();
int64_t block();
void barrier();
unsigned char *shared_memory();

// Every lane of a warp gives `bytes` bytes and gets those of all 32 lanes.
const void *exchange(const void *mine, int bytes);

// Whether the asynchronous copies of this run happen as late as they may.
bool late_copies();
// Kept for the fiber that calls.
void copy_later(void *to, const void *from, int bytes, int zeros);
void commit_copies();
void finish_copies(int groups_left);

// How the one instruction whose order inside no document states adds up.
enum class Product { chain, wide };
Product product_model();

}  // namespace emulated

inline int thread() { return emulated::thread(); }
inline int64_t block() { return emulated::block(); }
inline int64_t block_again() { return emulated::block(); }
inline void barrier() { emulated::barrier(); }

inline uint32_t bits_of(float f) {
  uint32_t u;
  memcpy(&u, &f, 4);
  return u;
}
inline float float_of(uint32_t u) {
  float f;
  memcpy(&f, &u, 4);
  return f;
}

inline float shuffle_xor(float v, int mask) {
  float other;
  const char *all = static_cast<const char *>(emulated::exchange(&v, 4));
  memcpy(&other, all + 4 * (thread() % 32 ^ mask), 4);
  return other;
}

// Compiled with -ffp-contract=off: each rounds once.
inline float add(float a, float b) { return a + b; }
inline float sub(float a, float b) { return a - b; }
inline float mul(float a, float b) { return a * b; }
inline float div(float a, float b) { return a / b; }
inline float root(float a) { return __builtin_sqrtf(a); }
inline float fused(float a, float b, float c) { return __builtin_fmaf(a, b, c); }

// The exponent is moved by a product with a power of two, which is exact.
inline float from_f16(uint16_t h) {
  const uint32_t sign = uint32_t(h & 0x8000) << 16, rest = h & 0x7fff;
  if (rest >= 0x7c00) return float_of(rest > 0x7c00 ? 0x7fc00000U : sign | 0x7f800000U);
  return float_of(sign | bits_of(float_of(rest << 13) * 0x1p112f));
}

// f is no NaN. Scaling by powers of two is exact, and rintf rounds ties to even.
inline uint16_t to_f16_number(float f) {
  const uint16_t sign = uint16_t(bits_of(f) >> 16 & 0x8000);
  const float a = fabsf(f);
  if (a >= 65520.0f) return uint16_t(sign | 0x7c00);
  if (a < 0x1p-14f) return uint16_t(sign | int(rintf(a * 0x1p24f)));
  int e;
  const float m = frexpf(a, &e);  // a = m * 2^e, m in [1/2, 1)
  return uint16_t(sign | ((e + 13) * 1024 + int(rintf(m * 2048.0f))));
}

inline uint16_t to_bf16_number(float f) {
  const uint32_t u = bits_of(f);
  return uint16_t((u + 0x7fffU + (u >> 16 & 1)) >> 16);
}

}  // namespace invar
