// Stage 1 of CUDA: libinvar_cuda.so, opened as stage 1 of the CPU is.
#pragma once

#include "../error.h"
#include "invar_cpu.h"
#include "invar_cuda.h"

#include <string>

namespace invar {

// What this extension was written for. Another contract means other bits.
inline constexpr const char *expected_contract = "invar-cuda-fp32/1";
inline constexpr int32_t expected_abi = INVAR_CUDA_ABI;

// Tensors are described with the numbers of invar_cpu.h in both libraries.
static_assert(static_cast<int>(INVAR_CUDA_FLOAT32) == static_cast<int>(INVAR_CPU_FLOAT32) &&
              static_cast<int>(INVAR_CUDA_BFLOAT16) == static_cast<int>(INVAR_CPU_BFLOAT16) &&
              static_cast<int>(INVAR_CUDA_FLOAT16) == static_cast<int>(INVAR_CPU_FLOAT16) &&
              INVAR_CUDA_PANEL == INVAR_CPU_PANEL);

struct Stage1 {
  std::string path;
  decltype(&invar_cuda_abi_version) abi_version;
  decltype(&invar_cuda_contract) contract;
  decltype(&invar_cuda_version) version;
  decltype(&invar_cuda_arches) arches;
  decltype(&invar_cuda_status_text) status_text;
  decltype(&invar_cuda_prepare) prepare;
  decltype(&invar_cuda_mm_workspace) mm_workspace;
  decltype(&invar_cuda_mm) mm;
  decltype(&invar_cuda_pack) pack;
  decltype(&invar_cuda_row_workspace) row_workspace;
  decltype(&invar_cuda_sum) sum;
  decltype(&invar_cuda_mean) mean;
  decltype(&invar_cuda_softmax) softmax;
  decltype(&invar_cuda_log_softmax) log_softmax;
  decltype(&invar_cuda_rms_norm) rms_norm;
  decltype(&invar_cuda_add_rms_norm) add_rms_norm;
  decltype(&invar_cuda_control_mm) control_mm;
};

// Opens the library at path and checks its ABI and contract. Throws with what was
// found and what was expected. A process holds one.
void attach(const std::string &path);

// The attached library; throws when there is none.
const Stage1 &stage1();

// Throws, with the text of a CUDA error where it is one, unless status is
// INVAR_CUDA_OK.
void stage1_ok(int32_t status, const char *op);

}  // namespace invar
