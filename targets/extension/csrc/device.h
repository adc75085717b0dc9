// The device that a library is for. The same sources make lib_ops.so for the CPU and,
// with INVAR_OPS_CUDA, lib_ops_cuda.so; gemm, rows and stage1 are its own.
#pragma once

#include "tensor.h"

#if defined(INVAR_OPS_CUDA)

#include "cuda/device.h"

#else

#include "stage1.h"

#define INVAR_KEY CPU
#define INVAR_KEY_NAME "CPU"
#define INVAR_DEVICE_TYPE aoti_torch_device_type_cpu
#define INVAR_OPS_DEFINES 1  // this library is always there, and defines the operators
#define INVAR_BOX(function) TORCH_BOX(function)

namespace invar {

inline int32_t current_device() { return 0; }
inline bool on_current_device(const Tensor &) { return true; }

}  // namespace invar

#endif
