// Checks of arguments. Each gives a status; the first that is not INVAR_CPU_OK wins.
#pragma once

#include "scratch.h"

namespace {

// Far above what memory can hold, and small enough for sums and products with
// constants not to overflow.
constexpr int64_t kMostElements = int64_t(1) << 56;

inline bool bad_size(int64_t n) { return n < 0 || n > kMostElements; }
inline bool bad_dtype(int32_t d) { return d < INVAR_CPU_FLOAT32 || d > INVAR_CPU_FLOAT16; }

inline int32_t check_sizes(int64_t m, int64_t n, int64_t k) {
  return bad_size(m) || bad_size(n) || bad_size(k) ? INVAR_CPU_BAD_SIZE : INVAR_CPU_OK;
}

inline int32_t check_range(int64_t begin, int64_t end, int64_t size) {
  return 0 <= begin && begin <= end && end <= size ? INVAR_CPU_OK : INVAR_CPU_BAD_RANGE;
}

inline int32_t check_scratch(int64_t needed, const void *scratch, int64_t size) {
  return needed > 0 && (!scratch || size < needed) ? INVAR_CPU_BAD_SCRATCH : INVAR_CPU_OK;
}

inline int32_t check_mm_shape(const invar_cpu_mm_args &g) {
  if (int32_t s = check_sizes(g.m, g.n, g.k)) return s;
  if (bad_dtype(g.a.dtype) || bad_dtype(g.b.dtype) || bad_dtype(g.out.dtype)) {
    return INVAR_CPU_BAD_DTYPE;
  }
  if (g.c.data && bad_dtype(g.c.dtype)) return INVAR_CPU_BAD_DTYPE;
  return INVAR_CPU_OK;
}

inline int32_t check_mm_pointers(const invar_cpu_mm_args &g) {
  if (!g.m || !g.n) return INVAR_CPU_OK;
  if (!g.out.data || (g.k && (!g.a.data || !g.b.data))) return INVAR_CPU_BAD_POINTER;
  return INVAR_CPU_OK;
}

inline int32_t check_row_shape(const invar_cpu_row_args &g) {
  if (int32_t s = check_sizes(g.rows, g.cols, 0)) return s;
  return bad_dtype(g.x.dtype) || bad_dtype(g.out.dtype) ? INVAR_CPU_BAD_DTYPE : INVAR_CPU_OK;
}

inline int32_t check_row_pointers(const invar_cpu_row_args &g, bool one_column) {
  if (!g.rows) return INVAR_CPU_OK;
  if (g.cols && (!g.x.data || !g.out.data)) return INVAR_CPU_BAD_POINTER;
  return one_column && !g.out.data ? INVAR_CPU_BAD_POINTER : INVAR_CPU_OK;
}

inline int32_t check_norm_shape(const invar_cpu_norm_args &g, bool residual) {
  if (int32_t s = check_sizes(g.rows, g.cols, 0)) return s;
  bool bad = bad_dtype(g.x.dtype) || bad_dtype(g.out.dtype);
  bad = bad || (g.weight.data && bad_dtype(g.weight.dtype));
  bad = bad || (residual && (bad_dtype(g.residual.dtype) || bad_dtype(g.residual_out.dtype)));
  return bad ? INVAR_CPU_BAD_DTYPE : INVAR_CPU_OK;
}

inline int32_t check_norm_pointers(const invar_cpu_norm_args &g, bool residual) {
  if (!g.rows || !g.cols) return INVAR_CPU_OK;
  bool bad = !g.x.data || !g.out.data;
  bad = bad || (residual && (!g.residual.data || !g.residual_out.data));
  return bad ? INVAR_CPU_BAD_POINTER : INVAR_CPU_OK;
}

}  // namespace
