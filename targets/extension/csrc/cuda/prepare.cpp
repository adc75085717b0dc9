// The C functions for the Python package that only this library has.

#include "../control.h"

// The architectures that stage 1 holds code for, as "sm_80,sm_90".
INVAR_OPS_API const char *invar_ops_arches() { return invar::stage1().arches(); }

// Loads all kernels onto the current device, so that no later call does.
INVAR_OPS_API int32_t invar_ops_prepare(char *error, int64_t size) {
  return invar::guarded(error, size, [] {
    invar::stage1_ok(invar::stage1().prepare(), "load the kernels onto the device");
  });
}
