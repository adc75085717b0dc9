// Every kernel of the fatbins: INVAR_X(source, name, params, threads).
#pragma once

#include "params.h"

#define INVAR_ROW_KERNELS(X)                                          \
  X(rows, invar_sum, RowParams, kRowThreads)                          \
  X(rows, invar_sum_wide, RowParams, kRowThreads)                     \
  X(rows, invar_sum_warp, RowParams, kRowThreads)                     \
  X(rows, invar_sum_warp_wide, RowParams, kRowThreads)                \
  X(rows, invar_sum_part, RowParams, kRowThreads)                     \
  X(rows, invar_sum_end, RowParams, kRowThreads)                      \
  X(rows, invar_softmax, RowParams, kRowThreads)                      \
  X(rows, invar_softmax_wide, RowParams, kRowThreads)                 \
  X(rows, invar_softmax_warp, RowParams, kRowThreads)                 \
  X(rows, invar_softmax_warp_wide, RowParams, kRowThreads)            \
  X(rows, invar_top_part, RowParams, kRowThreads)                     \
  X(rows, invar_exp_part, RowParams, kRowThreads)                     \
  X(rows, invar_softmax_part, RowParams, kRowThreads)                 \
  X(norm, invar_norm, NormParams, kRowThreads)                        \
  X(norm, invar_norm_wide, NormParams, kRowThreads)                   \
  X(norm, invar_norm_warp, NormParams, kRowThreads)                   \
  X(norm, invar_norm_warp_wide, NormParams, kRowThreads)

#define INVAR_MMA_TABLE(X, source, dtype)                             \
  X(source, invar_mm_##dtype##_16_k, MmParams, 128)                   \
  X(source, invar_mm_##dtype##_16_n, MmParams, 128)                   \
  X(source, invar_mm_##dtype##_64_k, MmParams, 128)                   \
  X(source, invar_mm_##dtype##_64_n, MmParams, 128)                   \
  X(source, invar_mm_##dtype##_128_k, MmParams, 256)                  \
  X(source, invar_mm_##dtype##_128_n, MmParams, 256)                  \
  X(source, invar_mm_##dtype##_64_any, MmParams, 128)

#define INVAR_MM_KERNELS(X)                                           \
  INVAR_MMA_TABLE(X, mm_bf16, bf16)                                   \
  INVAR_MMA_TABLE(X, mm_f16, f16)                                     \
  X(mm_f32, invar_mm_f32_16, MmParams, 256)                           \
  X(mm_f32, invar_mm_f32_64, MmParams, 256)                           \
  X(mm_f32, invar_mm_f32_128, MmParams, 256)                          \
  X(mm_end, invar_mm_end, MmParams, kRowThreads)                      \
  X(mm_end, invar_pack, PackParams, kRowThreads)                      \
  X(mm_end, invar_control, MmParams, kRowThreads)

#define INVAR_KERNELS(X) INVAR_ROW_KERNELS(X) INVAR_MM_KERNELS(X)

// The fatbins: one for each .cu.
#define INVAR_SOURCES(X) X(rows) X(norm) X(mm_bf16) X(mm_f16) X(mm_f32) X(mm_end)

namespace invar {

enum Kernel : int {
#define X(source, name, params, threads) k_##name,
  INVAR_KERNELS(X)
#undef X
      kernel_count
};

// Queues blocks of a kernel on a stream of the current device, with `shared` bytes of
// dynamic shared memory. params is the structure of the kernel's table entry. Gives a
// status. launch.cpp does it with the CUDA runtime, the conformance tests with an
// emulator.
int32_t launch(Kernel kernel, int64_t blocks, int shared, const void *params, void *stream);

// Loads all kernels onto the current device.
int32_t load_all();

// Text of a status that is not one of the library's own.
const char *runtime_text(int32_t status);

// More blocks go as more launches, each with its own `first`.
constexpr int64_t kMostBlocks = 0x7fffffff;

// Launches blocks [0, count); each block stands for `unit` values of params.first.
template <class Params>
int32_t launch_all(Kernel kernel, int64_t count, int64_t unit, int shared, Params params,
                   void *stream) {
  for (int64_t done = 0; done < count; done += kMostBlocks) {
    const int64_t blocks = count - done < kMostBlocks ? count - done : kMostBlocks;
    params.first = done * unit;
    if (const int32_t s = launch(kernel, blocks, shared, &params, stream)) return s;
  }
  return INVAR_CUDA_OK;
}

}  // namespace invar
