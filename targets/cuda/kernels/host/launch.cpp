// Launches with the CUDA runtime, linked in statically. A fatbin is loaded once for
// the process as a context-independent library; the runtime puts a kernel of it onto
// a device when it is first used there.
#include <cuda_runtime_api.h>

#include <atomic>
#include <mutex>

#include "kernels.h"

extern "C" {
#define X(source) extern const unsigned char invar_fatbin_##source[];
INVAR_SOURCES(X)
#undef X
}

namespace invar {
namespace {

enum Source {
#define X(source) s_##source,
  INVAR_SOURCES(X)
#undef X
      source_count
};

const unsigned char *const kFatbins[source_count] = {
#define X(source) invar_fatbin_##source,
    INVAR_SOURCES(X)
#undef X
};

struct Entry {
  Source source;
  const char *name;
  int threads;
};

constexpr Entry kEntries[kernel_count] = {
#define X(source, name, params, threads) {s_##source, #name, threads},
    INVAR_KERNELS(X)
#undef X
};

constexpr int kMostDevices = 64;
constexpr int kPlainShared = 48 << 10;  // what a kernel may have without being asked

std::mutex load_lock;
cudaLibrary_t libraries[source_count];
std::atomic<cudaKernel_t> kernels[kernel_count];
// Bit of a device: the kernel may have all the shared memory that it asks for there.
std::atomic<uint64_t> allowed[kernel_count];

int32_t status_of(cudaError_t e) {
  switch (e) {
    case cudaSuccess: return INVAR_CUDA_OK;
    case cudaErrorNoKernelImageForDevice: return INVAR_CUDA_NO_KERNEL;
    default: return INVAR_CUDA_RUNTIME + static_cast<int32_t>(e);
  }
}

// Loading is legal while a stream of this thread is being captured, but not in the
// mode that a capture sets by default.
class RelaxedCapture {
 public:
  RelaxedCapture() { cudaThreadExchangeStreamCaptureMode(&mode_); }
  ~RelaxedCapture() { cudaThreadExchangeStreamCaptureMode(&mode_); }
  RelaxedCapture(const RelaxedCapture &) = delete;
  RelaxedCapture &operator=(const RelaxedCapture &) = delete;

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

cudaError_t find(Kernel k, cudaKernel_t &found) {
  found = kernels[k].load(std::memory_order_acquire);
  if (found) return cudaSuccess;
  const std::lock_guard<std::mutex> hold(load_lock);
  found = kernels[k].load(std::memory_order_relaxed);
  if (found) return cudaSuccess;
  const RelaxedCapture relaxed;
  cudaLibrary_t &library = libraries[kEntries[k].source];
  if (!library) {
    const cudaError_t e = cudaLibraryLoadData(&library, kFatbins[kEntries[k].source], nullptr,
                                              nullptr, 0, nullptr, nullptr, 0);
    if (e != cudaSuccess) {
      library = nullptr;
      return e;
    }
  }
  const cudaError_t e = cudaLibraryGetKernel(&found, library, kEntries[k].name);
  if (e == cudaSuccess) kernels[k].store(found, std::memory_order_release);
  return e;
}

// The runtime keeps the permission for each device.
cudaError_t allow_shared(Kernel k, cudaKernel_t found, int shared) {
  if (shared <= kPlainShared) return cudaSuccess;
  int device = 0;
  cudaError_t e = cudaGetDevice(&device);
  if (e != cudaSuccess) return e;
  const uint64_t bit = device < kMostDevices ? uint64_t(1) << device : 0;
  if (bit & allowed[k].load(std::memory_order_acquire)) return cudaSuccess;
  const RelaxedCapture relaxed;
  e = cudaFuncSetAttribute(reinterpret_cast<const void *>(found),
                           cudaFuncAttributeMaxDynamicSharedMemorySize, shared);
  if (e == cudaSuccess) allowed[k].fetch_or(bit, std::memory_order_release);
  return e;
}

}  // namespace

int32_t launch(Kernel k, int64_t blocks, int shared, const void *params, void *stream) {
  if (blocks <= 0) return INVAR_CUDA_OK;
  cudaKernel_t found = nullptr;
  cudaError_t e = find(k, found);
  if (e == cudaSuccess) e = allow_shared(k, found, shared);
  if (e == cudaSuccess) {
    void *arguments[] = {const_cast<void *>(params)};
    e = cudaLaunchKernel(reinterpret_cast<const void *>(found),
                         dim3(static_cast<unsigned>(blocks)),
                         dim3(static_cast<unsigned>(kEntries[k].threads)), arguments,
                         static_cast<size_t>(shared), static_cast<cudaStream_t>(stream));
  }
  if (e != cudaSuccess) cudaGetLastError();  // it is reported here, not at someone else's call
  return status_of(e);
}

int32_t load_all() {
  for (int k = 0; k < kernel_count; k++) {
    cudaKernel_t found = nullptr;
    cudaError_t e = find(static_cast<Kernel>(k), found);
    cudaFuncAttributes unused;
    const RelaxedCapture relaxed;
    // Asking for the attributes brings the code onto the device.
    if (e == cudaSuccess) e = cudaFuncGetAttributes(&unused, reinterpret_cast<const void *>(found));
    if (e != cudaSuccess) {
      cudaGetLastError();
      return status_of(e);
    }
  }
  return INVAR_CUDA_OK;
}

const char *runtime_text(int32_t status) {
  return cudaGetErrorString(static_cast<cudaError_t>(status - INVAR_CUDA_RUNTIME));
}

}  // namespace invar
