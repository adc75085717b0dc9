// Memory that kernels work on, for the driver: of this process where they are emulated,
// of the GPU elsewhere.
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <memory>
#include <vector>

#if defined(INVAR_EMULATED)
#include "emulator.h"
#else
#include <cuda_runtime_api.h>
#endif

namespace invar {

#if defined(INVAR_EMULATED)

inline void begin(int order, bool late, bool wide) {
  emulated::configure(order, late, wide ? emulated::Product::wide : emulated::Product::chain);
}
inline const char *finish() { return nullptr; }
inline void *take(size_t bytes) { return aligned_alloc(256, (bytes + 255) / 256 * 256); }
inline void give(void *p) { free(p); }
inline void copy(void *to, const void *from, size_t bytes) { memcpy(to, from, bytes); }

#else

inline void must(cudaError_t e) {
  if (e == cudaSuccess) return;
  fprintf(stderr, "driver: CUDA: %s\n", cudaGetErrorString(e));
  exit(1);
}
inline void begin(int, bool, bool) { must(cudaSetDevice(0)); }
inline const char *finish() {
  const cudaError_t e = cudaDeviceSynchronize();
  return e == cudaSuccess ? nullptr : cudaGetErrorString(e);
}
inline void *take(size_t bytes) {
  void *p = nullptr;
  must(cudaMalloc(&p, bytes));
  return p;
}
inline void give(void *p) { must(cudaFree(p)); }
inline void copy(void *to, const void *from, size_t bytes) {
  must(cudaMemcpy(to, from, bytes, cudaMemcpyDefault));
}

#endif

// A piece of memory at a multiple of 256 bytes with marks before and behind it.
class Block {
 public:
  Block() = default;
  explicit Block(int64_t bytes) : size_(bytes > 0 ? static_cast<size_t>(bytes) : 0) {
    const std::vector<unsigned char> marks(size_ + 2 * kGuard, kMark);
    memory_.reset(take(marks.size()), give);
    copy(memory_.get(), marks.data(), marks.size());
  }
  // Without marks and exactly as large: what finds reads of memory that nobody wrote, and
  // steps over its end, sees both.
  static Block bare(int64_t bytes) {
    Block b;
    b.memory_.reset(take(static_cast<size_t>(bytes) + kGuard), give);
    return b;
  }
  void *at(int64_t offset) const { return static_cast<char *>(memory_.get()) + kGuard + offset; }
  void write(const std::vector<unsigned char> &from) const {
    if (!from.empty()) copy(at(0), from.data(), from.size());
  }
  void read(std::vector<unsigned char> &to) const {
    if (!to.empty()) copy(to.data(), at(0), to.size());
  }
  bool guarded() const {
    std::vector<unsigned char> all(size_ + 2 * kGuard);
    copy(all.data(), memory_.get(), all.size());
    for (size_t i = 0; i < kGuard; i++) {
      if (all[i] != kMark || all[size_ + kGuard + i] != kMark) return false;
    }
    return true;
  }

 private:
  static constexpr size_t kGuard = 256;
  static constexpr unsigned char kMark = 0xff;  // NaN in every dtype
  size_t size_ = 0;
  std::shared_ptr<void> memory_;
};

}  // namespace invar
