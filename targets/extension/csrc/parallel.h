// Work split over torch's own threads, so that torch.set_num_threads and core
// binding hold for this extension too. Stage 1 has no threads.
#pragma once

#include "error.h"

#include <cstdint>
#include <cstdlib>
#include <exception>
#include <memory>
#include <mutex>
#include <torch/csrc/stable/c/shim.h>

namespace invar {

// Runs body(begin, end) over [0, total), at least grain per thread. An exception
// of the body reaches the caller (torch's C interface would lose its text).
template <class Body>
void parallel_for(int64_t total, int64_t grain, const Body &body) {
  if (total <= 0) {
    return;
  }
  if (total <= grain) {
    body(0, total);
    return;
  }
  struct Job {
    const Body *body;
    std::mutex lock;
    std::exception_ptr error;
  } job{&body, {}, nullptr};
  const auto call = [](int64_t begin, int64_t end, void *context) {
    auto *self = static_cast<Job *>(context);
    try {
      (*self->body)(begin, end);
    } catch (...) {
      const std::lock_guard<std::mutex> hold(self->lock);
      self->error = std::current_exception();
    }
  };
  torch_ok(torch_parallel_for(0, total, grain, call, &job), "run in parallel");
  if (job.error) {
    std::rethrow_exception(job.error);
  }
}

inline int64_t num_threads() {
  uint32_t n = 1;
  torch_ok(torch_get_num_threads(&n), "ask for the number of threads");
  return n > 0 ? n : 1;
}

// Memory for one running call of a thread, 64-byte aligned, kept until the thread
// ends. Each slot is one buffer.
enum class Slot { kernel = 0, gather = 1, residual = 2 };

inline void *scratch(Slot slot, int64_t bytes) {
  if (bytes == 0) {
    return nullptr;
  }
  struct Buffer {
    std::unique_ptr<void, void (*)(void *)> memory{nullptr, std::free};
    int64_t size = 0;
  };
  static thread_local Buffer buffers[3];
  Buffer &buffer = buffers[static_cast<int>(slot)];
  if (buffer.size < bytes) {
    const int64_t size = (bytes + 4095) / 4096 * 4096;
    buffer.size = 0;
    buffer.memory.reset(std::aligned_alloc(64, static_cast<size_t>(size)));
    if (buffer.memory == nullptr) {
      fail("out of memory: ", size, " bytes of scratch");
    }
    buffer.size = size;
  }
  return buffer.memory.get();
}

}  // namespace invar
