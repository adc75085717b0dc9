// Every kernel of the fatbins: INVAR_X(source, name, params, threads).
#pragma once

#include "params.h"

#define INVAR_ROW_KERNELS(X)                                          \
  X(rows, invar_sum, RowParams, kRowThreads)                          \
  X(rows, invar_sum_warp, RowParams, kRowThreads)                     \
  X(rows, invar_sum_part, RowParams, kRowThreads)                     \
  X(rows, invar_sum_end, RowParams, kRowThreads)                      \
  X(rows, invar_softmax, RowParams, kRowThreads)                      \
  X(rows, invar_softmax_warp, RowParams, kRowThreads)                 \
  X(rows, invar_top_part, RowParams, kRowThreads)                     \
  X(rows, invar_exp_part, RowParams, kRowThreads)                     \
  X(rows, invar_softmax_part, RowParams, kRowThreads)                 \
  X(norm, invar_norm, NormParams, kRowThreads)                        \
  X(norm, invar_norm_warp, NormParams, kRowThreads)

#define INVAR_KERNELS(X) INVAR_ROW_KERNELS(X)

// The fatbins: one for each .cu.
#define INVAR_SOURCES(X) X(rows) X(norm)

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
