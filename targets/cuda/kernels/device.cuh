// What the kernels need of the machine: index, barrier, shuffle, shared memory and
// arithmetic that rounds once per operation. nvcc takes the real ones; any other
// compiler takes emulate.h of the conformance tests, which runs the same sources.
#pragma once

#include <stdint.h>

#include "params.h"

#if defined(__CUDACC__)

#define INVAR_DEVICE __device__ __forceinline__
#define INVAR_KERNEL(name, params, threads, blocks) \
  extern "C" __global__ void __launch_bounds__(threads, blocks) name(const __grid_constant__ params p)
#define INVAR_UNROLL _Pragma("unroll")
#define INVAR_FEW _Pragma("unroll 2")     // loads of two turns under way
#define INVAR_ROLLED _Pragma("unroll 1")  // keeps registers for more threads
#define INVAR_SHARED(name) extern __shared__ __align__(128) unsigned char name[]

namespace invar {

INVAR_DEVICE int thread() { return static_cast<int>(threadIdx.x); }
INVAR_DEVICE int64_t block() { return static_cast<int64_t>(blockIdx.x); }
// The same, so that the compiler asks once more instead of keeping what it made of it.
INVAR_DEVICE int64_t block_again() {
  uint32_t id;
  asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(id));
  return id;
}
INVAR_DEVICE void barrier() { __syncthreads(); }
INVAR_DEVICE float shuffle_xor(float v, int mask) { return __shfl_xor_sync(0xffffffffU, v, mask); }

INVAR_DEVICE float add(float a, float b) { return __fadd_rn(a, b); }
INVAR_DEVICE float sub(float a, float b) { return __fsub_rn(a, b); }
INVAR_DEVICE float mul(float a, float b) { return __fmul_rn(a, b); }
INVAR_DEVICE float div(float a, float b) { return __fdiv_rn(a, b); }
INVAR_DEVICE float root(float a) { return __fsqrt_rn(a); }
INVAR_DEVICE float fused(float a, float b, float c) { return __fmaf_rn(a, b, c); }
INVAR_DEVICE uint32_t bits_of(float f) { return __float_as_uint(f); }
INVAR_DEVICE float float_of(uint32_t u) { return __uint_as_float(u); }

// float16 by the machine: exact one way, rounded to nearest even the other.
INVAR_DEVICE float from_f16(uint16_t h) {
  float f;
  asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h));
  return f;
}
INVAR_DEVICE uint16_t to_f16_number(float f) {
  uint16_t h;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(f));
  return h;
}
INVAR_DEVICE uint16_t to_bf16_number(float f) {
  uint16_t h;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(h) : "f"(f));
  return h;
}

}  // namespace invar

#else
#include "emulate.h"
#endif

namespace invar {

INVAR_DEVICE bool is_nan(float f) { return (bits_of(f) & 0x7fffffffU) > 0x7f800000U; }

constexpr uint32_t kNaN32 = 0x7fc00000U;

// 16 bytes, as one load or store.
struct alignas(16) Quad {
  uint32_t w[4];
};

}  // namespace invar
