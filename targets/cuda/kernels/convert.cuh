// Runs of eight elements of any dtype and stride, from and to float32. A run is one
// or two wide accesses where it lies at a multiple of 16 bytes without gaps, and
// eight narrow ones elsewhere: that changes speed, never bits.
#pragma once

#include "device.cuh"

namespace invar {

// A NaN is stored canonical whatever it was.
struct F32 {
  typedef uint32_t word;
  static INVAR_DEVICE float widen(word u) { return float_of(u); }
  static INVAR_DEVICE word narrow(float f) { return is_nan(f) ? kNaN32 : bits_of(f); }
};
struct BF16 {
  typedef uint16_t word;
  static INVAR_DEVICE float widen(word u) { return float_of(static_cast<uint32_t>(u) << 16); }
  static INVAR_DEVICE word narrow(float f) { return is_nan(f) ? 0x7fc0U : to_bf16_number(f); }
};
struct F16 {
  typedef uint16_t word;
  static INVAR_DEVICE float widen(word u) { return from_f16(u); }
  static INVAR_DEVICE word narrow(float f) { return is_nan(f) ? 0x7e00U : to_f16_number(f); }
};

INVAR_DEVICE uint32_t narrow(int32_t dtype, float f) {
  if (dtype == INVAR_CUDA_FLOAT32) return F32::narrow(f);
  return dtype == INVAR_CUDA_BFLOAT16 ? BF16::narrow(f) : F16::narrow(f);
}

INVAR_DEVICE float load(const invar_cuda_in &x, int64_t i) {
  if (x.dtype == INVAR_CUDA_FLOAT32) return F32::widen(static_cast<const uint32_t *>(x.data)[i]);
  const uint16_t h = static_cast<const uint16_t *>(x.data)[i];
  return x.dtype == INVAR_CUDA_BFLOAT16 ? BF16::widen(h) : F16::widen(h);
}

INVAR_DEVICE void store(const invar_cuda_out &x, int64_t i, float f) {
  const uint32_t u = narrow(x.dtype, f);
  if (x.dtype == INVAR_CUDA_FLOAT32) {
    static_cast<uint32_t *>(x.data)[i] = u;
  } else {
    static_cast<uint16_t *>(x.data)[i] = static_cast<uint16_t>(u);
  }
}

// Whether a run at p is one or two accesses of 16 bytes.
INVAR_DEVICE bool wide(const void *p, int64_t step) {
  return step == 1 && (reinterpret_cast<uintptr_t>(p) & 15U) == 0;
}

// Eight elements at p, which is a multiple of 16 bytes.
template <class T> INVAR_DEVICE void load_wide(const typename T::word *p, float (&v)[kRun]) {
  constexpr int kQuads = sizeof(typename T::word) * kRun / 16, kEach = kRun / kQuads;
  INVAR_UNROLL
  for (int q = 0; q < kQuads; q++) {
    const Quad w = reinterpret_cast<const Quad *>(p)[q];
    INVAR_UNROLL
    for (int j = 0; j < kEach; j++) {
      const uint32_t u = kQuads == 2 ? w.w[j & 3] : w.w[j / 2] >> (j % 2 * 16);
      v[q * kEach + j] = T::widen(static_cast<typename T::word>(u));
    }
  }
}

template <class T> INVAR_DEVICE void store_wide(typename T::word *p, const float (&v)[kRun]) {
  constexpr int kQuads = sizeof(typename T::word) * kRun / 16;
  INVAR_UNROLL
  for (int q = 0; q < kQuads; q++) {
    Quad w;
    INVAR_UNROLL
    for (int j = 0; j < 4; j++) {
      w.w[j] = kQuads == 2 ? T::narrow(v[q * 4 + j])
                           : T::narrow(v[2 * j]) | static_cast<uint32_t>(T::narrow(v[2 * j + 1])) << 16;
    }
    reinterpret_cast<Quad *>(p)[q] = w;
  }
}

template <class T>
INVAR_DEVICE void load_run_of(const void *p, int64_t step, int64_t i, int64_t n, float fill,
                              float (&v)[kRun]) {
  const typename T::word *from = static_cast<const typename T::word *>(p) + i * step;
  if (i + kRun <= n && wide(from, step)) {
    load_wide<T>(from, v);
    return;
  }
  INVAR_UNROLL
  for (int j = 0; j < kRun; j++) v[j] = i + j < n ? T::widen(from[j * step]) : fill;
}

// Elements [i, i + 8) of p, step apart; from n on they are `fill`.
INVAR_DEVICE void load_run(int32_t dtype, const void *p, int64_t step, int64_t i, int64_t n,
                           float fill, float (&v)[kRun]) {
  if (dtype == INVAR_CUDA_FLOAT32) {
    load_run_of<F32>(p, step, i, n, fill, v);
  } else if (dtype == INVAR_CUDA_BFLOAT16) {
    load_run_of<BF16>(p, step, i, n, fill, v);
  } else {
    load_run_of<F16>(p, step, i, n, fill, v);
  }
}

template <class T>
INVAR_DEVICE void store_run_of(void *p, int64_t step, int64_t i, int64_t n,
                               const float (&v)[kRun]) {
  typename T::word *to = static_cast<typename T::word *>(p) + i * step;
  if (i + kRun <= n && wide(to, step)) {
    store_wide<T>(to, v);
    return;
  }
  INVAR_UNROLL
  for (int j = 0; j < kRun; j++) {
    if (i + j < n) to[j * step] = T::narrow(v[j]);
  }
}

// v to elements [i, i + 8) of p, those below n, each rounded once.
INVAR_DEVICE void store_run(int32_t dtype, void *p, int64_t step, int64_t i, int64_t n,
                            const float (&v)[kRun]) {
  if (dtype == INVAR_CUDA_FLOAT32) {
    store_run_of<F32>(p, step, i, n, v);
  } else if (dtype == INVAR_CUDA_BFLOAT16) {
    store_run_of<BF16>(p, step, i, n, v);
  } else {
    store_run_of<F16>(p, step, i, n, v);
  }
}

INVAR_DEVICE int64_t element_size(int32_t dtype) { return dtype == INVAR_CUDA_FLOAT32 ? 4 : 2; }

INVAR_DEVICE const void *row_of(const invar_cuda_in &x, int64_t row) {
  return static_cast<const char *>(x.data) + row * x.row * element_size(x.dtype);
}
INVAR_DEVICE void *row_of(const invar_cuda_out &x, int64_t row) {
  return static_cast<char *>(x.data) + row * x.row * element_size(x.dtype);
}

}  // namespace invar
