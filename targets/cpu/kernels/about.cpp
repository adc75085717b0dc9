// What the library says about itself.
#define INVAR_CPU_BUILD
#include "invar_cpu.h"

#if !defined(INVAR_CPU_VERSION)
#define INVAR_CPU_VERSION 0.1.0
#endif
#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)

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

int32_t invar_cpu_abi_version(void) { return INVAR_CPU_ABI; }

// The version counts changes of any bit of any result. See docs/contract.md.
const char *invar_cpu_contract(void) { return "invar-cpu-fp32/1"; }

const char *invar_cpu_version(void) { return TEXT(INVAR_CPU_VERSION); }

const char *invar_cpu_status_text(int32_t status) {
  switch (status) {
    case INVAR_CPU_OK: return "done";
    case INVAR_CPU_BAD_SIZE: return "a size is negative or a product of sizes overflows";
    case INVAR_CPU_BAD_DTYPE: return "a dtype is not float32, bfloat16 or float16";
    case INVAR_CPU_BAD_RANGE: return "the range of panels or rows is not inside the operand";
    case INVAR_CPU_BAD_POINTER: return "a pointer is NULL with elements behind it";
    case INVAR_CPU_BAD_SCRATCH: return "scratch is NULL or smaller than the scratch function says";
    case INVAR_CPU_BAD_ISA:
      return "the level is unknown or not available on this machine (INVAR_CPU_ISA names one)";
  }
  return "unknown status";
}

int32_t invar_cpu_operator_count(void) { return kCount; }

const char *invar_cpu_operator_name(int32_t index) {
  return index < 0 || index >= kCount ? nullptr : kOperators[index];
}

}  // extern "C"
