#include "routing.h"

#include "compute.h"
#include "device.h"
#include "overlap.h"
#include "rows.h"

#include <array>
#include <atomic>
#include <mutex>
#include <torch/csrc/stable/library.h>
#include <utility>

namespace invar {
namespace {

using torch::headeronly::IntHeaderOnlyArrayRef;
using torch::headeronly::ScalarType;
using torch::stable::detail::from;
using torch::stable::detail::to;

enum Id : int {
  id_mm, id_mm_out, id_bmm, id_bmm_out, id_mv, id_mv_out, id_dot, id_dot_out, id_vdot, id_vdot_out,
  id_softmax, id_softmax_out, id_log_softmax, id_log_softmax_out,
  id_sum, id_sum_out, id_mean, id_mean_out,
  id_addmm, id_addmm_out, id_addmm_in, id_baddbmm, id_baddbmm_out, id_baddbmm_in,
  id_addmv, id_addmv_out, id_addmv_in,
  id_count
};

constexpr std::array<Route, id_count> routes{{
    {"mm", "mm", "", true},
    {"mm.out", "mm", "out", true},
    {"bmm", "bmm", "", true},
    {"bmm.out", "bmm", "out", true},
    {"mv", "mv", "", true},
    {"mv.out", "mv", "out", true},
    {"dot", "dot", "", true},
    {"dot.out", "dot", "out", true},
    {"vdot", "vdot", "", true},
    {"vdot.out", "vdot", "out", true},
    {"_softmax", "_softmax", "", true},
    {"_softmax.out", "_softmax", "out", true},
    {"_log_softmax", "_log_softmax", "", true},
    {"_log_softmax.out", "_log_softmax", "out", true},
    {"sum.dim_IntList", "sum", "dim_IntList", true},
    {"sum.IntList_out", "sum", "IntList_out", true},
    {"mean.dim", "mean", "dim", true},
    {"mean.out", "mean", "out", true},
    {"addmm", "addmm", "", false},
    {"addmm.out", "addmm", "out", false},
    {"addmm_", "addmm_", "", false},
    {"baddbmm", "baddbmm", "", false},
    {"baddbmm.out", "baddbmm", "out", false},
    {"baddbmm_", "baddbmm_", "", false},
    {"addmv", "addmv", "", false},
    {"addmv.out", "addmv", "out", false},
    {"addmv_", "addmv_", "", false},
}};

std::atomic<bool> routing_on{false};
std::array<std::atomic<uint64_t>, id_count> routed{};
std::array<std::array<std::atomic<uint64_t>, static_cast<size_t>(Why::count_)>, id_count> fell{};
thread_local std::string last_error;

// Counts the call and says whether it is routed.
bool take(Id id, Why why) {
  auto &counter = why == Why::none ? routed[id] : fell[id][static_cast<size_t>(why)];
  counter.fetch_add(1, std::memory_order_relaxed);
  return why == Why::none;
}

// Whether routing is disabled; then the call is counted as one for the original.
bool off(Id id) {
  if (routing_on.load(std::memory_order_relaxed)) [[likely]] {
    return false;
  }
  take(id, Why::off);
  return true;
}

// Hands the call to the kernel that was registered before.
template <class... Args>
Tensor original(Id id, const Args &...args) {
  std::array<StableIValue, sizeof...(Args)> stack{from(args)...};
  const Route &r = routes[id];
  const std::string name = std::string("batch_invariant_ops_original::") + r.op;
  last_error.clear();
  if (torch_call_dispatcher(name.c_str(), r.overload, stack.data(), TORCH_ABI_VERSION) != 0) {
    fail("aten::", r.name, ": ", torch_error());
  }
  Tensor result = to<Tensor>(stack[0]);
  if (!last_error.empty()) {
    throw std::runtime_error(std::exchange(last_error, {}));
  }
  return result;
}

std::optional<IntHeaderOnlyArrayRef> list(const std::optional<List> &dims) {
  return dims ? std::make_optional<IntHeaderOnlyArrayRef>(dims->data(), dims->size())
              : std::nullopt;
}

// ---- out= ------------------------------------------------------------------

Sizes sizes_of(const View &v) { return {v.sizes, v.sizes + v.dim}; }

// Whether out can take a result of these sizes and dtype: it has them, or it is
// empty and may be resized.
Why check_out(const Arg &out, const Sizes &sizes, int32_t dtype) {
  if (!supported(out) || out.v.torch_dtype != dtype) {
    return Why::out;
  }
  int64_t numel = 0;
  torch_ok(aoti_torch_get_numel(out.t->get(), &numel), "read a tensor");
  return numel == 0 || sizes_of(out.v) == sizes ? Why::none : Why::out;
}

void resize(const Tensor &t, const Sizes &sizes) {
  std::array<StableIValue, 3> stack{from(t),
                                    from(IntHeaderOnlyArrayRef(sizes.data(), sizes.size())),
                                    from(std::nullopt)};
  torch_ok(torch_call_dispatcher("aten::resize_", "", stack.data(), TORCH_ABI_VERSION),
           "resize out");
  (void)to<Tensor>(stack[0]);
}

// Lets fill write the result. Where out may share memory with an input (addmm_) or
// with itself, that is a fresh tensor, copied over.
template <class Fill>
void write_out(const Tensor &out, const Sizes &sizes, std::initializer_list<const Arg *> inputs,
               const Fill &fill) {
  Arg to(out);
  if (sizes_of(to.v) != sizes) {
    resize(out, sizes);
    to = Arg(out);
  }
  if (writable_in_place(to, inputs)) {
    fill(to);
    return;
  }
  const Tensor result = empty(sizes, to.v.torch_dtype);
  fill(Arg(result));
  torch_ok(aoti_torch_copy_(out.get(), result.get(), 0), "copy into out");
}

// ---- products --------------------------------------------------------------

struct Product {
  Why (*check)(const Arg &, const Arg &);
  Sizes (*sizes)(const Arg &, const Arg &);
  void (*into)(const Arg &, const Arg &, const Addend &, const Arg &);
};

Sizes mv_sizes(const Arg &a, const Arg &) { return {a.v.sizes[0]}; }
Sizes dot_sizes(const Arg &, const Arg &) { return {}; }
void dot_add_into(const Arg &a, const Arg &b, const Addend &, const Arg &out) {
  dot_into(a, b, out);
}

constexpr Product product_mm{check_mm, mm_sizes, mm_into};
constexpr Product product_bmm{check_bmm, bmm_sizes, bmm_into};
constexpr Product product_mv{check_mv, mv_sizes, mv_into};
constexpr Product product_dot{check_dot, dot_sizes, dot_add_into};

template <Id id, const Product &p>
Tensor product(const Tensor &self, const Tensor &other) {
  if (off(id)) {
    return original(id, self, other);
  }
  const Arg a(self);
  const Arg b(other);
  if (!take(id, p.check(a, b))) {
    return original(id, self, other);
  }
  Tensor out = empty(p.sizes(a, b), a.v.torch_dtype);
  p.into(a, b, {}, Arg(out));
  return out;
}

template <Id id, const Product &p>
Tensor product_out(const Tensor &self, const Tensor &other, const Tensor &out) {
  if (off(id)) {
    original(id, self, other, out);
    return out;
  }
  const Arg a(self);
  const Arg b(other);
  Why why = p.check(a, b);
  const Sizes sizes = why == Why::none ? p.sizes(a, b) : Sizes{};
  why = why == Why::none ? check_out(Arg(out), sizes, a.v.torch_dtype) : why;
  if (!take(id, why)) {
    original(id, self, other, out);
  } else {
    write_out(out, sizes, {&a, &b}, [&](const Arg &to) { p.into(a, b, {}, to); });
  }
  return out;
}

// ---- products with an addend, called by the Python side ----------------------

const Product &product_of(Id id) {
  switch (id) {
    case id_addmm: case id_addmm_out: case id_addmm_in: return product_mm;
    case id_baddbmm: case id_baddbmm_out: case id_baddbmm_in: return product_bmm;
    case id_addmv: case id_addmv_out: case id_addmv_in: return product_mv;
    default: fail("no product with an addend for route ", static_cast<int>(id));
  }
}

Why check_added(const Product &p, const Arg &c, const Arg &a, const Arg &b, Sizes &sizes) {
  const Why why = p.check(a, b);
  if (why != Why::none) {
    return why;
  }
  sizes = p.sizes(a, b);
  return check_add(c, a, sizes);
}

// None when the call is not routed.
std::optional<Tensor> route_add(int64_t index, const Tensor &self, const Tensor &mat1,
                                const Tensor &mat2, double beta, double alpha) {
  const Id id = static_cast<Id>(index);
  const Product &p = product_of(id);
  if (off(id)) {
    return std::nullopt;
  }
  const Arg c(self);
  const Arg a(mat1);
  const Arg b(mat2);
  Sizes sizes;
  if (!take(id, check_added(p, c, a, b, sizes))) {
    return std::nullopt;
  }
  Tensor out = empty(sizes, a.v.torch_dtype);
  p.into(a, b, {&c, static_cast<float>(beta), static_cast<float>(alpha)}, Arg(out));
  return out;
}

// The same for alpha = beta = 1, which a linear layer with a bias asks for. Python hands
// over three tensors in a third of the time that it takes for the numbers beside them.
template <Id id>
std::optional<Tensor> route_plain(const Tensor &self, const Tensor &mat1, const Tensor &mat2) {
  return route_add(id, self, mat1, mat2, 1.0, 1.0);
}

// False when the call is not routed; out is then as it was.
bool route_add_out(int64_t index, const Tensor &self, const Tensor &mat1, const Tensor &mat2,
                   double beta, double alpha, const Tensor &out) {
  const Id id = static_cast<Id>(index);
  const Product &p = product_of(id);
  if (off(id)) {
    return false;
  }
  const Arg c(self);
  const Arg a(mat1);
  const Arg b(mat2);
  Sizes sizes;
  Why why = check_added(p, c, a, b, sizes);
  why = why == Why::none ? check_out(Arg(out), sizes, a.v.torch_dtype) : why;
  if (!take(id, why)) {
    return false;
  }
  write_out(out, sizes, {&c, &a, &b}, [&](const Arg &to) {
    p.into(a, b, {&c, static_cast<float>(beta), static_cast<float>(alpha)}, to);
  });
  return true;
}

// ---- softmax ---------------------------------------------------------------

Why check_softmax(const Arg &x, int64_t dim, bool half_to_float) {
  if (!supported(x)) {
    return Why::dtype;
  }
  return half_to_float || !wrap_dim(dim, x.v.dim) ? Why::shape : Why::none;
}

template <Id id, Softmax kind>
Tensor softmax_route(const Tensor &self, int64_t dim, bool half_to_float) {
  if (off(id)) {
    return original(id, self, dim, half_to_float);
  }
  const Arg x(self);
  if (!take(id, check_softmax(x, dim, half_to_float))) {
    return original(id, self, dim, half_to_float);
  }
  Tensor out = empty_like(x.v);
  softmax(kind, x, *wrap_dim(dim, x.v.dim), Arg(out), routes[id].op);
  return out;
}

template <Id id, Softmax kind>
Tensor softmax_route_out(const Tensor &self, int64_t dim, bool half_to_float, const Tensor &out) {
  if (off(id)) {
    original(id, self, dim, half_to_float, out);
    return out;
  }
  const Arg x(self);
  const Sizes sizes = sizes_of(x.v);
  Why why = check_softmax(x, dim, half_to_float);
  why = why == Why::none ? check_out(Arg(out), sizes, x.v.torch_dtype) : why;
  if (!take(id, why)) {
    original(id, self, dim, half_to_float, out);
  } else {
    write_out(out, sizes, {&x}, [&](const Arg &to) {
      softmax(kind, x, *wrap_dim(dim, x.v.dim), to, routes[id].op);
    });
  }
  return out;
}

// ---- sum, mean -------------------------------------------------------------

// result becomes the dtype of the result.
Why check_reduction(const Arg &x, const std::optional<List> &dims,
                    const std::optional<ScalarType> &dtype, Mask &mask,
                    int32_t &result) {
  const Why why = check_reduce(x, dims, mask);
  if (why != Why::none) {
    return why;
  }
  result = x.v.torch_dtype;
  if (dtype) {
    switch (*dtype) {
      case ScalarType::Float: result = torch_dtype(INVAR_CPU_FLOAT32); break;
      case ScalarType::BFloat16: result = torch_dtype(INVAR_CPU_BFLOAT16); break;
      case ScalarType::Half: result = torch_dtype(INVAR_CPU_FLOAT16); break;
      default: return Why::accumulate;
    }
  }
  return Why::none;
}

template <Id id, Reduction kind>
Tensor reduction(const Tensor &self, std::optional<List> dims, bool keepdim,
                 std::optional<ScalarType> dtype) {
  if (off(id)) {
    return original(id, self, list(dims), keepdim, dtype);
  }
  const Arg x(self);
  Mask mask;
  int32_t result = 0;
  if (!take(id, check_reduction(x, dims, dtype, mask, result))) {
    return original(id, self, list(dims), keepdim, dtype);
  }
  Tensor out = empty(reduce_sizes(x, mask, keepdim), result);
  reduce(kind, x, mask, Arg(out), keepdim, routes[id].op);
  return out;
}

template <Id id, Reduction kind>
Tensor reduction_out(const Tensor &self, std::optional<List> dims, bool keepdim,
                     std::optional<ScalarType> dtype, const Tensor &out) {
  if (off(id)) {
    original(id, self, list(dims), keepdim, dtype, out);
    return out;
  }
  const Arg x(self);
  Mask mask;
  int32_t result = 0;
  Why why = check_reduction(x, dims, dtype, mask, result);
  const Sizes sizes = why == Why::none ? reduce_sizes(x, mask, keepdim) : Sizes{};
  if (why == Why::none) {
    const Arg to(out);
    // Without dtype= the result has out's own.
    why = check_out(to, sizes, dtype ? result : to.v.torch_dtype);
  }
  if (!take(id, why)) {
    original(id, self, list(dims), keepdim, dtype, out);
  } else {
    write_out(out, sizes, {&x},
              [&](const Arg &to) { reduce(kind, x, mask, to, keepdim, routes[id].op); });
  }
  return out;
}

// ---- registration ------------------------------------------------------------

using Boxed = void (*)(StableIValue *, uint64_t, uint64_t);

Boxed boxed(Id id) {
  switch (id) {
    case id_mm: return INVAR_BOX((&product<id_mm, product_mm>));
    case id_mm_out: return INVAR_BOX((&product_out<id_mm_out, product_mm>));
    case id_bmm: return INVAR_BOX((&product<id_bmm, product_bmm>));
    case id_bmm_out: return INVAR_BOX((&product_out<id_bmm_out, product_bmm>));
    case id_mv: return INVAR_BOX((&product<id_mv, product_mv>));
    case id_mv_out: return INVAR_BOX((&product_out<id_mv_out, product_mv>));
    case id_dot: return INVAR_BOX((&product<id_dot, product_dot>));
    case id_dot_out: return INVAR_BOX((&product_out<id_dot_out, product_dot>));
    case id_vdot: return INVAR_BOX((&product<id_vdot, product_dot>));
    case id_vdot_out: return INVAR_BOX((&product_out<id_vdot_out, product_dot>));
    case id_softmax: return INVAR_BOX((&softmax_route<id_softmax, Softmax::plain>));
    case id_softmax_out: return INVAR_BOX((&softmax_route_out<id_softmax_out, Softmax::plain>));
    case id_log_softmax: return INVAR_BOX((&softmax_route<id_log_softmax, Softmax::log>));
    case id_log_softmax_out:
      return INVAR_BOX((&softmax_route_out<id_log_softmax_out, Softmax::log>));
    case id_sum: return INVAR_BOX((&reduction<id_sum, Reduction::sum>));
    case id_sum_out: return INVAR_BOX((&reduction_out<id_sum_out, Reduction::sum>));
    case id_mean: return INVAR_BOX((&reduction<id_mean, Reduction::mean>));
    case id_mean_out: return INVAR_BOX((&reduction_out<id_mean_out, Reduction::mean>));
    default: return nullptr;
  }
}

std::mutex registry_lock;
TorchLibraryHandle registry = nullptr;

#if INVAR_OPS_DEFINES
STABLE_TORCH_LIBRARY_FRAGMENT(batch_invariant_ops, m) {
  m.def("_route_add(int route, Tensor self, Tensor a, Tensor b, float beta, float alpha)"
        " -> Tensor?");
  m.def("_route_addmm(Tensor self, Tensor a, Tensor b) -> Tensor?");
  m.def("_route_baddbmm(Tensor self, Tensor a, Tensor b) -> Tensor?");
  m.def("_route_addmv(Tensor self, Tensor a, Tensor b) -> Tensor?");
  m.def("_route_add_out(int route, Tensor self, Tensor a, Tensor b, float beta, float alpha,"
        " Tensor(a!) out) -> bool");
}
#endif

STABLE_TORCH_LIBRARY_IMPL(batch_invariant_ops, INVAR_KEY, m) {
  m.impl("_route_add", INVAR_BOX(&route_add));
  m.impl("_route_addmm", INVAR_BOX(&route_plain<id_addmm>));
  m.impl("_route_baddbmm", INVAR_BOX(&route_plain<id_baddbmm>));
  m.impl("_route_addmv", INVAR_BOX(&route_plain<id_addmv>));
  m.impl("_route_add_out", INVAR_BOX(&route_add_out));
}

}  // namespace

int64_t route_count() { return id_count; }
const Route &route(int64_t index) { return routes.at(static_cast<size_t>(index)); }
uint64_t routed_calls(int64_t index) { return routed.at(static_cast<size_t>(index)).load(); }
uint64_t original_calls(int64_t index, Why why) {
  return fell.at(static_cast<size_t>(index)).at(static_cast<size_t>(why)).load();
}

const char *why_text(Why why) {
  switch (why) {
    case Why::none: return "routed";
    case Why::off: return "routing is disabled";
    case Why::dtype:
      return "not a strided " INVAR_KEY_NAME " tensor of float32, bfloat16 or float16";
    case Why::mixed: return "operands of different dtypes";
    case Why::shape: return "sizes or dimensions that only the original kernel judges";
    case Why::out: return "out= has another dtype, or another size and is not empty";
    case Why::accumulate: return "dtype= asks for a dtype without an invariant kernel";
    case Why::scalar: return "alpha or beta is not a real number";
    default: return "unknown reason";
  }
}

void set_routing(bool on) { routing_on.store(on, std::memory_order_relaxed); }
bool routing() { return routing_on.load(std::memory_order_relaxed); }

void register_routes() {
  const std::lock_guard<std::mutex> hold(registry_lock);
  if (registry != nullptr) {
    return;
  }
  stage1();  // throws when there is none: nothing may be routed into a hole
  torch_ok(aoti_torch_library_init_impl("aten", INVAR_KEY_NAME, "batch_invariant_ops", 0, &registry),
           "open aten for registration");
  for (int i = 0; i < id_count; i++) {
    if (routes[static_cast<size_t>(i)].native) {
      torch_ok(torch_library_impl(registry, routes[static_cast<size_t>(i)].name,
                                  boxed(static_cast<Id>(i)), TORCH_ABI_VERSION),
               routes[static_cast<size_t>(i)].name);
    }
  }
}

void unregister_routes() {
  const std::lock_guard<std::mutex> hold(registry_lock);
  if (registry != nullptr) {
    torch_ok(aoti_torch_delete_library_object(registry), "take the overrides away");
    registry = nullptr;
  }
}

bool routes_registered() {
  const std::lock_guard<std::mutex> hold(registry_lock);
  return registry != nullptr;
}

void count_scalar_call(int64_t index) { take(static_cast<Id>(index), Why::scalar); }

void note_error(const std::string &text) { last_error = text; }

}  // namespace invar
