// Routing of aten operators on the CPU key to the invariant kernels.
//
// Registered are mm, bmm, mv, dot, vdot, _softmax, _log_softmax, sum.dim_IntList,
// mean.dim and their out forms from here. addmm, baddbmm and addmv carry Scalar
// arguments, which torch's stable ABI cannot pass to a kernel: the Python side
// registers those and calls _route_add, _route_add_out, and with the default numbers
// _route_addmm and its like.
//
// What is not routed goes to the kernel that was there before, kept by the Python
// side as batch_invariant_ops_original::NAME; calling aten::NAME from its own
// override would recurse.
#pragma once

#include "why.h"

#include <cstdint>
#include <string>

namespace invar {

struct Route {
  const char *name;      // as in aten: "mm.out"
  const char *op;        // "mm"
  const char *overload;  // "out"
  bool native;           // registered from here
};

int64_t route_count();
const Route &route(int64_t index);
uint64_t routed_calls(int64_t index);
uint64_t original_calls(int64_t index, Why why);

// A sentence for a reason; never NULL.
const char *why_text(Why why);

// Takes effect for the next call in every thread.
void set_routing(bool on);
bool routing();

// Puts the overrides in front of what is registered for aten on the CPU key, and
// takes them away. Taking away is for a moment when no other thread can be inside
// a dispatch: torch replaces a kernel without a lock.
void register_routes();
void unregister_routes();
bool routes_registered();

// Counts a call that the Python side hands to the original for its alpha or beta.
void count_scalar_call(int64_t index);

// Text of the error that the original kernel raised in this thread; the call that
// went to it then throws it.
void note_error(const std::string &text);

}  // namespace invar
