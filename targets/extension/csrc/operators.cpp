// torch.ops.batch_invariant_ops.*: the operators for direct use. They raise on
// what they have no kernel for; only the routed aten operators have an original
// to go back to.

#include "compute.h"
#include "device.h"
#include "gemm.h"
#include "rows.h"

#include <limits>
#include <torch/csrc/stable/library.h>
#include <tuple>

namespace invar {
namespace {

using torch::headeronly::ScalarType;

// The error for a call that cannot be computed.
[[noreturn]] void refuse(const char *op, Why why, const std::string &got) {
  switch (why) {
    case Why::dtype:
      fail(op, " has kernels for strided " INVAR_KEY_NAME
               " tensors of float32, bfloat16 and float16; got ", got);
    case Why::mixed: fail(op, " expects operands of one dtype; got ", got);
    default: fail(op, " cannot combine these sizes or dimensions; got ", got);
  }
}

template <class... Named>
void require(const char *op, Why why, const Named &...args) {
  if (why != Why::none) [[unlikely]] {
    std::string got;
    ((got += (got.empty() ? "" : ", ") + describe(args.first, args.second->v)), ...);
    refuse(op, why, got);
  }
}

std::pair<const char *, const Arg *> named(const char *name, const Arg &x) { return {name, &x}; }

// The dtype of a result: the one asked for, else the input's.
int32_t result_dtype(const char *op, const Arg &x, const std::optional<ScalarType> &wanted) {
  if (!wanted) {
    return x.v.torch_dtype;
  }
  switch (*wanted) {
    case ScalarType::Float: return torch_dtype(INVAR_CPU_FLOAT32);
    case ScalarType::BFloat16: return torch_dtype(INVAR_CPU_BFLOAT16);
    case ScalarType::Half: return torch_dtype(INVAR_CPU_FLOAT16);
    default: fail(op, " can give float32, bfloat16 or float16; dtype asks for another");
  }
}

Tensor op_mm(const Tensor &self, const Tensor &mat2) {
  const Arg a(self);
  const Arg b(mat2);
  require("mm", check_mm(a, b), named("self", a), named("mat2", b));
  Tensor out = empty(mm_sizes(a, b), a.v.torch_dtype);
  mm_into(a, b, {}, Arg(out));
  return out;
}

Tensor op_bmm(const Tensor &self, const Tensor &mat2) {
  const Arg a(self);
  const Arg b(mat2);
  require("bmm", check_bmm(a, b), named("self", a), named("mat2", b));
  Tensor out = empty(bmm_sizes(a, b), a.v.torch_dtype);
  bmm_into(a, b, {}, Arg(out));
  return out;
}

Tensor op_addmm(const Tensor &self, const Tensor &mat1, const Tensor &mat2, double beta,
                double alpha) {
  const Arg c(self);
  const Arg a(mat1);
  const Arg b(mat2);
  require("addmm", check_mm(a, b), named("mat1", a), named("mat2", b));
  const Sizes sizes = mm_sizes(a, b);
  require("addmm", check_add(c, a, sizes), named("self", c), named("mat1", a), named("mat2", b));
  Tensor out = empty(sizes, a.v.torch_dtype);
  mm_into(a, b, {&c, static_cast<float>(beta), static_cast<float>(alpha)}, Arg(out));
  return out;
}

Tensor op_matmul(const Tensor &self, const Tensor &other) {
  const Arg a(self);
  const Arg b(other);
  require("matmul", check_matmul(a, b), named("self", a), named("other", b));
  Tensor out = empty(matmul_sizes(a, b), a.v.torch_dtype);
  matmul_into(a, b, Arg(out));
  return out;
}

std::optional<Arg> optional_arg(const std::optional<Tensor> &t) {
  return t ? std::optional<Arg>(*t) : std::nullopt;
}

const Arg *pointer(const std::optional<Arg> &x) { return x ? &*x : nullptr; }

Sizes linear_sizes(const Arg &input, int64_t n) {
  Sizes sizes(input.v.sizes, input.v.sizes + input.v.dim);
  sizes.back() = n;
  return sizes;
}

Tensor op_linear(const Tensor &input, const Tensor &weight, const std::optional<Tensor> &bias) {
  const Arg x(input);
  const Arg w(weight);
  const std::optional<Arg> b = optional_arg(bias);
  const Why why = check_linear(x, w, pointer(b));
  if (b) {
    require("linear", why, named("input", x), named("weight", w), named("bias", *b));
  } else {
    require("linear", why, named("input", x), named("weight", w));
  }
  const int64_t n = w.v.sizes[0];
  Tensor out = empty(linear_sizes(x, n), x.v.torch_dtype);
  linear_into(x, w, false, n, pointer(b), Arg(out));
  return out;
}

int64_t panels_of(int64_t n) { return (n + INVAR_CPU_PANEL - 1) / INVAR_CPU_PANEL; }

Tensor op_pack(const Tensor &weight) {
  const Arg w(weight);
  require("pack", supported(w) ? (w.v.dim == 2 ? Why::none : Why::shape) : Why::dtype,
          named("weight", w));
  const int64_t n = w.v.sizes[0];
  const int64_t k = w.v.sizes[1];
  Tensor packed = empty({panels_of(n), k, INVAR_CPU_PANEL}, w.v.torch_dtype);
  pack_into(w, Arg(packed));
  return packed;
}

// What pack gave for a weight of out_features rows and x's last size.
bool is_packed(const Arg &packed, const Arg &x, int64_t out_features) {
  bool contiguous = false;
  torch_ok(aoti_torch_is_contiguous(packed.t->get(), &contiguous), "linear_packed");
  return contiguous && packed.v.dim == 3 && packed.v.sizes[2] == INVAR_CPU_PANEL &&
         out_features >= 0 && packed.v.sizes[0] == panels_of(out_features) &&
         x.v.dim > 0 && x.v.sizes[x.v.dim - 1] == packed.v.sizes[1];
}

Tensor op_linear_packed(const Tensor &input, const Tensor &packed, int64_t out_features,
                        const std::optional<Tensor> &bias) {
  const char *op = "linear_packed";
  const Arg x(input);
  const Arg p(packed);
  const std::optional<Arg> b = optional_arg(bias);
  Why why = supported(x) && supported(p) ? Why::none : Why::dtype;
  why = why == Why::none && x.v.dtype != p.v.dtype ? Why::mixed : why;
  require(op, why, named("input", x), named("packed", p));
  if (!is_packed(p, x, out_features)) {
    fail(op, " expects what pack(weight) gave, out_features = weight.size(0) and input[..., k]; got ",
         describe("input", x.v), ", ", describe("packed", p.v), ", out_features: ", out_features);
  }
  if (b) {
    why = !supported(*b) ? Why::dtype
          : b->v.dtype != x.v.dtype ? Why::mixed
          : b->v.dim == 1 && b->v.sizes[0] == out_features ? Why::none
                                                           : Why::shape;
    require(op, why, named("input", x), named("bias", *b));
  }
  Tensor out = empty(linear_sizes(x, out_features), x.v.torch_dtype);
  linear_into(x, p, true, out_features, pointer(b), Arg(out));
  return out;
}

Tensor reduced(const char *op, Reduction kind, const Arg &x, Why why, const Mask &mask,
               bool keepdim, const std::optional<ScalarType> &dtype) {
  require(op, why, named("self", x));
  Tensor out = empty(reduce_sizes(x, mask, keepdim), result_dtype(op, x, dtype));
  reduce(kind, x, mask, Arg(out), keepdim, op);
  return out;
}

Tensor reduce_op(const char *op, Reduction kind, const Tensor &self,
                 const std::optional<List> &dims, bool keepdim,
                 const std::optional<ScalarType> &dtype) {
  const Arg x(self);
  Mask mask;
  return reduced(op, kind, x, check_reduce(x, dims, mask), mask, keepdim, dtype);
}

// The last dimension goes. Python hands over a tensor alone in less time than one with
// a list of dimensions, which takes half a microsecond.
Tensor reduce_last(const char *op, Reduction kind, const Tensor &self) {
  const Arg x(self);
  const int64_t last = -1;
  Mask mask;
  return reduced(op, kind, x, check_reduce(x, &last, 1, mask), mask, false, std::nullopt);
}

Tensor op_sum(const Tensor &self, std::optional<List> dim, bool keepdim,
              std::optional<ScalarType> dtype) {
  return reduce_op("sum", Reduction::sum, self, dim, keepdim, dtype);
}

Tensor op_mean(const Tensor &self, std::optional<List> dim, bool keepdim,
               std::optional<ScalarType> dtype) {
  return reduce_op("mean", Reduction::mean, self, dim, keepdim, dtype);
}

Tensor op_sum_last(const Tensor &self) { return reduce_last("sum", Reduction::sum, self); }

Tensor op_mean_last(const Tensor &self) { return reduce_last("mean", Reduction::mean, self); }

Tensor softmax_op(const char *op, Softmax kind, const Tensor &self, int64_t dim,
                  const std::optional<ScalarType> &dtype) {
  const Arg x(self);
  require(op, supported(x) ? Why::none : Why::dtype, named("self", x));
  const std::optional<int64_t> along = wrap_dim(dim, x.v.dim);
  if (!along) {
    fail(op, ": dim ", dim, " is out of range for ", describe("self", x.v));
  }
  View like = x.v;
  like.torch_dtype = result_dtype(op, x, dtype);
  Tensor out = empty_like(like);
  softmax(kind, x, *along, Arg(out), op);
  return out;
}

Tensor op_softmax(const Tensor &self, int64_t dim, std::optional<ScalarType> dtype) {
  return softmax_op("softmax", Softmax::plain, self, dim, dtype);
}

Tensor op_log_softmax(const Tensor &self, int64_t dim, std::optional<ScalarType> dtype) {
  return softmax_op("log_softmax", Softmax::log, self, dim, dtype);
}

Tensor op_softmax_last(const Tensor &self) {
  return softmax_op("softmax", Softmax::plain, self, -1, std::nullopt);
}

Tensor op_log_softmax_last(const Tensor &self) {
  return softmax_op("log_softmax", Softmax::log, self, -1, std::nullopt);
}

// The sizes over which a norm goes.
struct Shape {
  const int64_t *sizes;
  int64_t dim;
};

Shape shape_of(const List &list) { return {list.data(), static_cast<int64_t>(list.size())}; }

// The last size alone; none of a scalar.
Shape last_of(const View &v) {
  return v.dim > 0 ? Shape{v.sizes + v.dim - 1, 1} : Shape{nullptr, 0};
}

bool ends_with(const View &v, const Shape &shape) {
  bool fits = shape.dim > 0 && shape.dim <= v.dim;
  for (int64_t i = 0; fits && i < shape.dim; i++) {
    fits = shape.sizes[i] == v.sizes[v.dim - shape.dim + i];
  }
  return fits;
}

void check_norm(const char *op, const Arg &x, const Shape &shape, const Arg *weight) {
  require(op, supported(x) ? Why::none : Why::dtype, named("input", x));
  if (!ends_with(x.v, shape)) {
    fail(op, ": normalized_shape must be the last sizes of the input; got ",
         describe("input", x.v), " and ", shape.dim, " sizes in normalized_shape");
  }
  if (weight != nullptr) {
    require(op, supported(*weight) ? Why::none : Why::dtype, named("weight", *weight));
    if (weight->v.dim != shape.dim || !ends_with(weight->v, shape)) {
      fail(op, ": weight must have the sizes of normalized_shape; got ",
           describe("weight", weight->v));
    }
  }
}

// eps=None is the epsilon of float32, in which the kernel computes.
float epsilon(const std::optional<double> &eps) {
  return eps ? static_cast<float>(*eps) : std::numeric_limits<float>::epsilon();
}

Sizes sizes_of(const View &v) { return {v.sizes, v.sizes + v.dim}; }

Tensor norm(const Arg &x, const Shape &shape, const Arg *weight, float eps) {
  check_norm("rms_norm", x, shape, weight);
  Tensor result = empty(sizes_of(x.v), x.v.torch_dtype);
  const Arg out(result);
  rms_norm({&x, nullptr, weight, &out, nullptr, shape.dim, eps}, "rms_norm");
  return result;
}

std::tuple<Tensor, Tensor> add_norm(const Arg &x, const Arg &r, const Shape &shape,
                                    const Arg *weight, float eps) {
  const char *op = "add_rms_norm";
  check_norm(op, x, shape, weight);
  require(op, supported(r) ? (r.v.dtype == x.v.dtype ? Why::none : Why::mixed) : Why::dtype,
          named("input", x), named("residual", r));
  if (sizes_of(x.v) != sizes_of(r.v)) {
    fail(op, ": input and residual must have the same sizes; got ", describe("input", x.v), ", ",
         describe("residual", r.v));
  }
  Tensor normed = empty(sizes_of(x.v), x.v.torch_dtype);
  Tensor added = empty(sizes_of(x.v), x.v.torch_dtype);
  const Arg out(normed);
  const Arg residual_out(added);
  rms_norm({&x, &r, weight, &out, &residual_out, shape.dim, eps}, op);
  return {normed, added};
}

Tensor op_rms_norm(const Tensor &input, List normalized_shape, const std::optional<Tensor> &weight,
                   std::optional<double> eps) {
  const std::optional<Arg> w = optional_arg(weight);
  return norm(Arg(input), shape_of(normalized_shape), pointer(w), epsilon(eps));
}

// Over the last dimension, with a weight: what a model asks for.
Tensor op_rms_norm_last(const Tensor &input, const Tensor &weight, double eps) {
  const Arg x(input);
  const Arg w(weight);
  return norm(x, last_of(x.v), &w, static_cast<float>(eps));
}

std::tuple<Tensor, Tensor> op_add_rms_norm(const Tensor &input, const Tensor &residual,
                                           List normalized_shape,
                                           const std::optional<Tensor> &weight,
                                           std::optional<double> eps) {
  const std::optional<Arg> w = optional_arg(weight);
  return add_norm(Arg(input), Arg(residual), shape_of(normalized_shape), pointer(w), epsilon(eps));
}

std::tuple<Tensor, Tensor> op_add_rms_norm_last(const Tensor &input, const Tensor &residual,
                                                const Tensor &weight, double eps) {
  const Arg x(input);
  const Arg w(weight);
  return add_norm(x, Arg(residual), last_of(x.v), &w, static_cast<float>(eps));
}

// Breaks the contract on purpose; see invar_cpu_control_mm.
Tensor op_control_mm(const Tensor &self, const Tensor &mat2) {
  const Arg a(self);
  const Arg b(mat2);
  require("_control_mm", check_mm(a, b), named("self", a), named("mat2", b));
  Tensor out = empty(mm_sizes(a, b), a.v.torch_dtype);
  control_into(a, b, Arg(out));
  return out;
}

#if INVAR_OPS_DEFINES
STABLE_TORCH_LIBRARY(batch_invariant_ops, m) {
  m.def("mm(Tensor self, Tensor mat2) -> Tensor");
  m.def("bmm(Tensor self, Tensor mat2) -> Tensor");
  m.def("addmm(Tensor self, Tensor mat1, Tensor mat2, *, float beta=1.0, float alpha=1.0)"
        " -> Tensor");
  m.def("matmul(Tensor self, Tensor other) -> Tensor");
  m.def("linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor");
  m.def("pack(Tensor weight) -> Tensor");
  m.def("linear_packed(Tensor input, Tensor packed, int out_features, Tensor? bias=None)"
        " -> Tensor");
  // The whole form comes before the short one: torch.ops tries them in this order and
  // throws, for 9 us, where one does not fit.
  m.def("sum(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None)"
        " -> Tensor");
  m.def("sum.last(Tensor self) -> Tensor");
  m.def("mean(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None)"
        " -> Tensor");
  m.def("mean.last(Tensor self) -> Tensor");
  m.def("softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor");
  m.def("softmax.last(Tensor self) -> Tensor");
  m.def("log_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor");
  m.def("log_softmax.last(Tensor self) -> Tensor");
  m.def("rms_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, float? eps=None)"
        " -> Tensor");
  m.def("rms_norm.last(Tensor input, Tensor weight, float eps) -> Tensor");
  m.def("add_rms_norm(Tensor input, Tensor residual, int[] normalized_shape,"
        " Tensor? weight=None, float? eps=None) -> (Tensor, Tensor)");
  m.def("add_rms_norm.last(Tensor input, Tensor residual, Tensor weight, float eps)"
        " -> (Tensor, Tensor)");
  m.def("_control_mm(Tensor self, Tensor mat2) -> Tensor");
}
#endif

STABLE_TORCH_LIBRARY_IMPL(batch_invariant_ops, INVAR_KEY, m) {
  m.impl("mm", INVAR_BOX(&op_mm));
  m.impl("bmm", INVAR_BOX(&op_bmm));
  m.impl("addmm", INVAR_BOX(&op_addmm));
  m.impl("matmul", INVAR_BOX(&op_matmul));
  m.impl("linear", INVAR_BOX(&op_linear));
  m.impl("pack", INVAR_BOX(&op_pack));
  m.impl("linear_packed", INVAR_BOX(&op_linear_packed));
  m.impl("sum", INVAR_BOX(&op_sum));
  m.impl("sum.last", INVAR_BOX(&op_sum_last));
  m.impl("mean", INVAR_BOX(&op_mean));
  m.impl("mean.last", INVAR_BOX(&op_mean_last));
  m.impl("softmax", INVAR_BOX(&op_softmax));
  m.impl("softmax.last", INVAR_BOX(&op_softmax_last));
  m.impl("log_softmax", INVAR_BOX(&op_log_softmax));
  m.impl("log_softmax.last", INVAR_BOX(&op_log_softmax_last));
  m.impl("rms_norm", INVAR_BOX(&op_rms_norm));
  m.impl("rms_norm.last", INVAR_BOX(&op_rms_norm_last));
  m.impl("add_rms_norm", INVAR_BOX(&op_add_rms_norm));
  m.impl("add_rms_norm.last", INVAR_BOX(&op_add_rms_norm_last));
  m.impl("_control_mm", INVAR_BOX(&op_control_mm));
}

}  // namespace
}  // namespace invar
