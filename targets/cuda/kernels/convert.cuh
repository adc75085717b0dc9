// Runs of eight elements of any dtype and stride, from and to float32. A run is one
// or two wide accesses where it lies at a multiple of 16 bytes without gaps, and
// eight narrow ones elsewhere: that changes speed, never bits.
#pragma once

#include "device.cuh"

namespace invar {

struct F32 {
  typedef uint32_t word;
  static INVAR_DEVICE float widen(word u) { return float_of(u); }
};
struct BF16 {
  typedef uint16_t word;
  static INVAR_DEVICE float widen(word u) { return float_of(static_cast<uint32_t>(u) << 16); }
};
struct F16 {
  typedef uint16_t word;
  static INVAR_DEVICE float widen(word u) { return from_f16(u); }
};

// A NaN is stored canonical whatever it was.
INVAR_DEVICE uint32_t narrow(int32_t dtype, float f) {
  if (dtype == INVAR_CUDA_FLOAT32) return is_nan(f) ? kNaN32 : bits_of(f);
  if (dtype == INVAR_CUDA_BFLOAT16) return is_nan(f) ? 0x7fc0U : to_bf16_number(f);
  return is_nan(f) ? 0x7e00U : to_f16_number(f);
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

// Elements [i, i + 8) of p, step apart; from n on they are `fill`.
template <class T>
INVAR_DEVICE void load_run(const typename T::word *p, int64_t step, int64_t i, int64_t n,
                           float fill, float (&v)[kRun]) {
  if (i + kRun <= n && wide(p + i, step)) {
    constexpr int kWords = sizeof(typename T::word) * kRun / 16;
    INVAR_UNROLL
    for (int q = 0; q < kWords; q++) {
      const Quad w = reinterpret_cast<const Quad *>(p + i)[q];
      INVAR_UNROLL
      for (int j = 0; j < kRun / kWords; j++) {
        if (sizeof(typename T::word) == 4) {
          v[q * 4 + j] = T::widen(static_cast<typename T::word>(w.w[j & 3]));
        } else {
          v[j] = T::widen(static_cast<typename T::word>(w.w[(j / 2) & 3] >> (j % 2 * 16)));
        }
      }
    }
    return;
  }
  INVAR_UNROLL
  for (int j = 0; j < kRun; j++) v[j] = i + j < n ? T::widen(p[(i + j) * step]) : fill;
}

// The same where the dtype is known at run time only.
INVAR_DEVICE void load_run(int32_t dtype, const void *p, int64_t step, int64_t i, int64_t n,
                           float fill, float (&v)[kRun]) {
  if (dtype == INVAR_CUDA_FLOAT32) {
    load_run<F32>(static_cast<const uint32_t *>(p), step, i, n, fill, v);
  } else if (dtype == INVAR_CUDA_BFLOAT16) {
    load_run<BF16>(static_cast<const uint16_t *>(p), step, i, n, fill, v);
  } else {
    load_run<F16>(static_cast<const uint16_t *>(p), step, i, n, fill, v);
  }
}

// v to elements [i, i + 8) of p, those below n, each rounded once.
INVAR_DEVICE void store_run(int32_t dtype, void *p, int64_t step, int64_t i, int64_t n,
                            const float (&v)[kRun]) {
  if (dtype == INVAR_CUDA_FLOAT32) {
    uint32_t *to = static_cast<uint32_t *>(p);
    if (i + kRun <= n && wide(to + i, step)) {
      INVAR_UNROLL
      for (int q = 0; q < 2; q++) {
        Quad w;
        INVAR_UNROLL
        for (int j = 0; j < 4; j++) w.w[j] = narrow(dtype, v[q * 4 + j]);
        reinterpret_cast<Quad *>(to + i)[q] = w;
      }
      return;
    }
    INVAR_UNROLL
    for (int j = 0; j < kRun; j++) {
      if (i + j < n) to[(i + j) * step] = narrow(dtype, v[j]);
    }
    return;
  }
  uint16_t *to = static_cast<uint16_t *>(p);
  if (i + kRun <= n && wide(to + i, step)) {
    Quad w;
    INVAR_UNROLL
    for (int j = 0; j < 4; j++) {
      w.w[j] = narrow(dtype, v[2 * j]) | narrow(dtype, v[2 * j + 1]) << 16;
    }
    *reinterpret_cast<Quad *>(to + i) = w;
    return;
  }
  INVAR_UNROLL
  for (int j = 0; j < kRun; j++) {
    if (i + j < n) to[(i + j) * step] = static_cast<uint16_t>(narrow(dtype, v[j]));
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
