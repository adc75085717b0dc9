// Runs of elements of any dtype and stride, from and to float32 without gaps.
#pragma once

#include "scratch.h"

namespace {

inline int64_t element_size(int32_t dtype) { return dtype == INVAR_CPU_FLOAT32 ? 4 : 2; }

inline const char *element(const invar_cpu_in &x, int64_t row, int64_t col) {
  return static_cast<const char *>(x.data) + (row * x.row + col * x.col) * element_size(x.dtype);
}
inline char *element(const invar_cpu_out &x, int64_t row, int64_t col) {
  return static_cast<char *>(x.data) + (row * x.row + col * x.col) * element_size(x.dtype);
}

inline float get(const char *p, int32_t dtype) {
  if (dtype == INVAR_CPU_FLOAT32) return *reinterpret_cast<const float_any *>(p);
  uint16_t h = *reinterpret_cast<const half_any *>(p);
  return dtype == INVAR_CPU_BFLOAT16 ? from_bf16(h) : from_f16(h);
}

// A NaN is stored canonical whatever it was.
inline void put(char *p, int32_t dtype, float f) {
  if (dtype == INVAR_CPU_FLOAT32) {
    *reinterpret_cast<float_any *>(p) = canonical1(f);
  } else {
    *reinterpret_cast<half_any *>(p) = dtype == INVAR_CPU_BFLOAT16 ? to_bf16(f) : to_f16(f);
  }
}

// n elements, stride apart, to floats
inline void widen(const char *p, int32_t dtype, int64_t stride, int64_t n, float *to) {
  int64_t i = 0, step = stride * element_size(dtype);
  if (stride == 1) {
    if (dtype == INVAR_CPU_FLOAT32) {
      __builtin_memcpy(to, p, size_t(n) * 4);
      return;
    }
    if (dtype == INVAR_CPU_BFLOAT16) {
      for (; i + VL <= n; i += VL) store(to + i, load_bf16(p + 2 * i));
    } else {
      for (; i + VL <= n; i += VL) store(to + i, load_f16(p + 2 * i));
    }
  }
  for (; i < n; i++) to[i] = get(p + i * step, dtype);
}

// n floats to elements, stride apart, each rounded once
inline void narrow(const float *from, int64_t n, char *p, int32_t dtype, int64_t stride) {
  int64_t i = 0, step = stride * element_size(dtype);
  if (stride == 1) {
    if (dtype == INVAR_CPU_FLOAT32) {
      for (; i + VL <= n; i += VL) store(p + 4 * i, canonical(load(from + i)));
    } else if (dtype == INVAR_CPU_BFLOAT16) {
      for (; i + VL <= n; i += VL) store_bf16(p + 2 * i, canonical(load(from + i)));
    } else {
      for (; i + VL <= n; i += VL) store_f16(p + 2 * i, canonical(load(from + i)));
    }
  }
  for (; i < n; i++) put(p + i * step, dtype, from[i]);
}

// rows x cols elements to floats, rows ld apart. Walks along the smaller stride.
inline void widen_matrix(const invar_cpu_in &x, int64_t row, int64_t rows, int64_t col,
                         int64_t cols, float *to, int64_t ld) {
  if (x.row != 1 || x.col == 1) {
    for (int64_t i = 0; i < rows; i++) {
      widen(element(x, row + i, col), x.dtype, x.col, cols, to + i * ld);
    }
    return;
  }
  int64_t i = 0;
  for (; i + VL <= rows; i += VL) {
    int64_t j = 0;
    for (; j + VL <= cols; j += VL) {
      if (x.dtype == INVAR_CPU_FLOAT32) {
        auto *p = reinterpret_cast<const float_any *>(element(x, row + i, col + j));
        transpose(p, x.col, to + i * ld + j, ld);
        continue;
      }
      float wide[VL * VL];
      for (int q = 0; q < VL; q++) {
        widen(element(x, row + i, col + j + q), x.dtype, 1, VL, wide + q * VL);
      }
      transpose(wide, VL, to + i * ld + j, ld);
    }
    for (; j < cols; j++) {
      for (int q = 0; q < VL; q++) to[(i + q) * ld + j] = get(element(x, row + i + q, col + j), x.dtype);
    }
  }
  for (; i < rows; i++) widen(element(x, row + i, col), x.dtype, x.col, cols, to + i * ld);
}

}  // namespace
