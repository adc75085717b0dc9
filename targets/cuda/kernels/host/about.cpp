// What the library says about itself.
#define INVAR_CUDA_BUILD
#include "kernels.h"

#if !defined(INVAR_CUDA_VERSION)
#define INVAR_CUDA_VERSION 0.1.0
#endif
#if !defined(INVAR_CUDA_ARCHES)
#error "define INVAR_CUDA_ARCHES: the architectures in the fatbins, as sm_80,sm_90"
#endif
#define TEXT_OF(...) #__VA_ARGS__
#define TEXT(...) TEXT_OF(__VA_ARGS__)

namespace {

// "linear_packed" is pack followed by mm; bmm, addmm, linear and matmul are mm with
// other arguments. They are listed because a caller asks for them by name.
const char *const kOperators[] = {
    "mm",   "bmm",     "addmm",       "linear",   "matmul",       "pack", "linear_packed",
    "sum",  "mean",    "softmax",     "log_softmax", "rms_norm",  "add_rms_norm",
};
constexpr int32_t kCount = sizeof kOperators / sizeof *kOperators;

}  // namespace

extern "C" {

int32_t invar_cuda_abi_version(void) { return INVAR_CUDA_ABI; }

// The number counts changes of any bit of any result. See docs/contract-cuda.md.
const char *invar_cuda_contract(void) { return "invar-cuda-fp32/1"; }

const char *invar_cuda_version(void) { return TEXT(INVAR_CUDA_VERSION); }

const char *invar_cuda_arches(void) { return TEXT(INVAR_CUDA_ARCHES); }

const char *invar_cuda_status_text(int32_t status) {
  switch (status) {
    case INVAR_CUDA_OK: return "done";
    case INVAR_CUDA_BAD_SIZE: return "a size is negative or a product of sizes overflows";
    case INVAR_CUDA_BAD_DTYPE:
      return "a dtype is not float32, bfloat16 or float16, or a and b differ";
    case INVAR_CUDA_BAD_VARIANT: return "no such variant for these arguments";
    case INVAR_CUDA_BAD_POINTER:
      return "a pointer is NULL with elements behind it, or not aligned to its element";
    case INVAR_CUDA_BAD_WORKSPACE:
      return "workspace is NULL, smaller than the workspace function says, or not at a multiple "
             "of 16 bytes";
    case INVAR_CUDA_NO_KERNEL:
      return "this library has no kernels for the architecture of the current device";
  }
  return status >= INVAR_CUDA_RUNTIME ? invar::runtime_text(status) : "unknown status";
}

int32_t invar_cuda_operator_count(void) { return kCount; }

const char *invar_cuda_operator_name(int32_t index) {
  return index < 0 || index >= kCount ? nullptr : kOperators[index];
}

int32_t invar_cuda_prepare(void) { return invar::load_all(); }

}  // extern "C"
