// The inside boundary: what dispatch.cpp calls, one table for each level.
//
// Every level is one translation unit (level_*.cpp) made of the same headers over
// another vec_*.h. Everything in those headers lives in an unnamed namespace and no
// C++ library header is used: an inline function that the linker merges between
// units could otherwise carry AVX-512 code into the baseline.
#pragma once

#include "invar_cpu.h"

struct invar_level {
  const char *name;
  // Arguments were checked and the floating-point state was set by the caller.
  // scratch is aligned to 64 bytes.
  void (*mm)(const invar_cpu_mm_args *, int64_t panel_begin, int64_t panel_end, float *scratch);
  void (*pack)(const invar_cpu_in *b, int64_t n, int64_t k, void *packed, int64_t panel_begin,
               int64_t panel_end);
  void (*sum)(const invar_cpu_row_args *, bool mean, int64_t row_begin, int64_t row_end,
              float *scratch);
  void (*softmax)(const invar_cpu_row_args *, bool logarithm, int64_t row_begin, int64_t row_end,
                  float *scratch);
  // residual.data is NULL for rms_norm.
  void (*norm)(const invar_cpu_norm_args *, int64_t row_begin, int64_t row_end, float *scratch);
};

extern "C" {
__attribute__((visibility("hidden"))) extern const invar_level invar_level_baseline;
__attribute__((visibility("hidden"))) extern const invar_level invar_level_avx2;
__attribute__((visibility("hidden"))) extern const invar_level invar_level_avx512;
__attribute__((visibility("hidden"))) extern const invar_level invar_level_neon;
}
