// The C functions that the Python package calls through ctypes: no tensors here.
// Functions that can go wrong return 0, or 1 and a text in error.

#include "control.h"
#include "routing.h"

using invar::guarded;

INVAR_OPS_API int32_t invar_ops_attach(const char *path, char *error, int64_t size) {
  return guarded(error, size, [&] { invar::attach(path); });
}

INVAR_OPS_API int32_t invar_ops_expected_abi() { return invar::expected_abi; }
INVAR_OPS_API const char *invar_ops_expected_contract() { return invar::expected_contract; }

#if !defined(INVAR_OPS_CUDA)
// NULL when the forced level is not available.
INVAR_OPS_API const char *invar_ops_isa_current() { return invar::stage1().isa_current(); }

INVAR_OPS_API int32_t invar_ops_isa_select(const char *name, char *error, int64_t size) {
  return guarded(error, size, [&] {
    invar::stage1_ok(invar::stage1().isa_select(name), "select an instruction set level");
  });
}
#endif

INVAR_OPS_API int32_t invar_ops_register(char *error, int64_t size) {
  return guarded(error, size, [] { invar::register_routes(); });
}

INVAR_OPS_API int32_t invar_ops_unregister(char *error, int64_t size) {
  return guarded(error, size, [] { invar::unregister_routes(); });
}

INVAR_OPS_API int32_t invar_ops_registered() { return invar::routes_registered() ? 1 : 0; }
INVAR_OPS_API void invar_ops_set_routing(int32_t on) { invar::set_routing(on != 0); }
INVAR_OPS_API int32_t invar_ops_routing() { return invar::routing() ? 1 : 0; }

INVAR_OPS_API int64_t invar_ops_route_count() { return invar::route_count(); }
INVAR_OPS_API const char *invar_ops_route_name(int64_t i) { return invar::route(i).name; }
INVAR_OPS_API int32_t invar_ops_route_native(int64_t i) { return invar::route(i).native ? 1 : 0; }
INVAR_OPS_API uint64_t invar_ops_routed_calls(int64_t i) { return invar::routed_calls(i); }

INVAR_OPS_API int32_t invar_ops_why_count() { return static_cast<int32_t>(invar::Why::count_); }
INVAR_OPS_API const char *invar_ops_why_text(int32_t why) {
  return invar::why_text(static_cast<invar::Why>(why));
}
INVAR_OPS_API uint64_t invar_ops_original_calls(int64_t i, int32_t why) {
  return invar::original_calls(i, static_cast<invar::Why>(why));
}

INVAR_OPS_API void invar_ops_count_scalar_call(int64_t i) { invar::count_scalar_call(i); }
INVAR_OPS_API void invar_ops_note_error(const char *text) { invar::note_error(text); }
