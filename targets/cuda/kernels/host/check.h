// Checks of arguments. Each gives a status; the first that is not INVAR_CUDA_OK wins.
#pragma once

#include "invar_cuda.h"

namespace invar {

// Far above what memory can hold, and small enough for sums and products with
// constants not to overflow.
constexpr int64_t kMostElements = int64_t(1) << 56;

inline bool bad_size(int64_t n) { return n < 0 || n > kMostElements; }
inline bool bad_dtype(int32_t d) { return d < INVAR_CUDA_FLOAT32 || d > INVAR_CUDA_FLOAT16; }
inline int64_t size_of(int32_t dtype) { return dtype == INVAR_CUDA_FLOAT32 ? 4 : 2; }

// a * b, or -1 where it is more than any memory.
inline int64_t product(int64_t a, int64_t b) {
  int64_t e;
  return a < 0 || b < 0 || __builtin_mul_overflow(a, b, &e) || bad_size(e) ? -1 : e;
}

inline int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

inline bool bad_pointer(const void *p, int32_t dtype) {
  return p == nullptr || reinterpret_cast<uintptr_t>(p) % uintptr_t(size_of(dtype)) != 0;
}

inline int32_t check_workspace(int64_t needed, const void *workspace, int64_t size) {
  if (needed <= 0) return INVAR_CUDA_OK;
  const bool bad = !workspace || size < needed || reinterpret_cast<uintptr_t>(workspace) % 16 != 0;
  return bad ? INVAR_CUDA_BAD_WORKSPACE : INVAR_CUDA_OK;
}

inline int32_t first_of(int32_t a, int32_t b) { return a ? a : b; }

}  // namespace invar
