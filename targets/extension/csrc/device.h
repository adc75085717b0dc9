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
#define INVAR_BOX(function) TORCH_BOX(function)

#endif
