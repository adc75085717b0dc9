// The part of device.h for CUDA: every operator runs with the device of its tensors as
// the current one, on the current stream of that device.
//
// With INVAR_OPS_EMULATED, which the conformance tests set, tensors lie on the CPU and
// stage 1 is the emulator: everything but these few lines is then as on a GPU.
#pragma once

#include "stage1.h"

#include <torch/csrc/inductor/aoti_torch/c/shim.h>
#include <torch/csrc/stable/library.h>
#include <type_traits>

#if defined(INVAR_OPS_EMULATED)

#define INVAR_KEY CPU
#define INVAR_KEY_NAME "CPU"
#define INVAR_DEVICE_TYPE aoti_torch_device_type_cpu
#define INVAR_OPS_DEFINES 1
#define INVAR_BOX(function) TORCH_BOX(function)

namespace invar {

inline int32_t current_device() { return 0; }
inline bool on_current_device(const Tensor &) { return true; }
inline void *current_stream() { return nullptr; }

}  // namespace invar

#else

// Lives in libtorch_cuda.so alone, and shim.h declares it only for torch's own build.
extern "C" AOTITorchError aoti_torch_get_current_cuda_stream(int32_t device_index,
                                                             void **ret_stream);

#define INVAR_KEY CUDA
#define INVAR_KEY_NAME "CUDA"
#define INVAR_DEVICE_TYPE aoti_torch_device_type_cuda
#define INVAR_OPS_DEFINES 0
#define INVAR_BOX(function) TORCH_BOX((&::invar::OnDevice<(function)>::call))

namespace invar {

// Makes the device of a tensor current, and gives back the one before.
class DeviceScope {
 public:
  explicit DeviceScope(const Tensor &t) {
    int32_t index = 0;
    torch_ok(aoti_torch_get_device_index(t.get(), &index), "read a tensor");
    torch_ok(aoti_torch_create_device_guard(index, &guard_), "make a device current");
  }
  ~DeviceScope() { (void)aoti_torch_delete_device_guard(guard_); }
  DeviceScope(const DeviceScope &) = delete;
  DeviceScope &operator=(const DeviceScope &) = delete;

 private:
  DeviceGuardHandle guard_ = nullptr;
};

// The first tensor among arguments.
template <class First, class... Rest>
const Tensor &first_tensor(const First &first, const Rest &...rest) {
  if constexpr (std::is_same_v<First, Tensor>) {
    return first;
  } else {
    return first_tensor(rest...);
  }
}

// A function of tensors with the scope around it.
template <auto function> struct OnDevice;

template <class Result, class... Args, Result (*function)(Args...)> struct OnDevice<function> {
  static Result call(Args... args) {
    const DeviceScope scope(first_tensor<std::remove_cv_t<std::remove_reference_t<Args>>...>(
        args...));
    return function(args...);
  }
};

int32_t current_device();
bool on_current_device(const Tensor &t);

// A cudaStream_t.
void *current_stream();

}  // namespace invar

#endif
