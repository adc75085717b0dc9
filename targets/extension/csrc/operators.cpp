// torch.ops.batch_invariant_ops.*: the operators for direct use. They raise on
// what they have no kernel for; only the routed aten operators have an original
// to go back to.

#include "compute.h"
#include "parallel.h"
#include "rows.h"
#include "stage1.h"

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
      fail(op, " has kernels for strided CPU tensors of float32, bfloat16 and float16; got ", got);
    case Why::mixed: fail(op, " expects operands of one dtype; got ", got);
    default: fail(op, " cannot combine these sizes or dimensions; got ", got);
  }
}

template <class... Named>
void require(const char *op, Why why, const Named &...named) {
  if (why != Why::none) [[unlikely]] {
    std::string got;
    ((got += (got.empty() ? "" : ", ") + describe(named.first, view(*named.second))), ...);
    refuse(op, why, got);
  }
}

std::pair<const char *, const Tensor *> arg(const char *name, const Tensor &t) {
  return {name, &t};
}

int32_t dtype_of(const Tensor &t) { return view(t).torch_dtype; }

// The dtype of a result: the one asked for, else the input's.
int32_t result_dtype(const char *op, const Tensor &x, const std::optional<ScalarType> &wanted) {
  if (!wanted) {
    return dtype_of(x);
  }
  switch (*wanted) {
    case ScalarType::Float: return torch_dtype(INVAR_CPU_FLOAT32);
    case ScalarType::BFloat16: return torch_dtype(INVAR_CPU_BFLOAT16);
    case ScalarType::Half: return torch_dtype(INVAR_CPU_FLOAT16);
    default: fail(op, " can give float32, bfloat16 or float16; dtype asks for another");
  }
}

Tensor op_mm(const Tensor &self, const Tensor &mat2) {
  require("mm", check_mm(self, mat2), arg("self", self), arg("mat2", mat2));
  Tensor out = empty(mm_sizes(self, mat2), dtype_of(self));
  mm_into(self, mat2, {}, out);
  return out;
}

Tensor op_bmm(const Tensor &self, const Tensor &mat2) {
  require("bmm", check_bmm(self, mat2), arg("self", self), arg("mat2", mat2));
  Tensor out = empty(bmm_sizes(self, mat2), dtype_of(self));
  bmm_into(self, mat2, {}, out);
  return out;
}

Tensor op_addmm(const Tensor &self, const Tensor &mat1, const Tensor &mat2, double beta,
                double alpha) {
  require("addmm", check_mm(mat1, mat2), arg("mat1", mat1), arg("mat2", mat2));
  const Sizes sizes = mm_sizes(mat1, mat2);
  require("addmm", check_add(self, mat1, sizes), arg("self", self), arg("mat1", mat1),
          arg("mat2", mat2));
  Tensor out = empty(sizes, dtype_of(mat1));
  mm_into(mat1, mat2, {&self, static_cast<float>(beta), static_cast<float>(alpha)}, out);
  return out;
}

Tensor op_matmul(const Tensor &self, const Tensor &other) {
  require("matmul", check_matmul(self, other), arg("self", self), arg("other", other));
  Tensor out = empty(matmul_sizes(self, other), dtype_of(self));
  matmul_into(self, other, out);
  return out;
}

Sizes linear_sizes(const Tensor &input, int64_t n) {
  const View v = view(input);
  Sizes sizes(v.sizes, v.sizes + v.dim);
  sizes.back() = n;
  return sizes;
}

Tensor op_linear(const Tensor &input, const Tensor &weight, const std::optional<Tensor> &bias) {
  const Why why = check_linear(input, weight, bias);
  if (bias) {
    require("linear", why, arg("input", input), arg("weight", weight), arg("bias", *bias));
  } else {
    require("linear", why, arg("input", input), arg("weight", weight));
  }
  const int64_t n = view(weight).sizes[0];
  Tensor out = empty(linear_sizes(input, n), dtype_of(input));
  linear_into(input, weight, false, n, bias, out);
  return out;
}

Tensor op_pack(const Tensor &weight) {
  const View v = view(weight);
  require("pack", supported(weight, v) ? (v.dim == 2 ? Why::none : Why::shape) : Why::dtype,
          arg("weight", weight));
  const int64_t n = v.sizes[0];
  const int64_t k = v.sizes[1];
  const int64_t panels = stage1().mm_panels(n);
  Tensor packed = empty({panels, k, INVAR_CPU_PANEL}, v.torch_dtype);
  // The weight [n, k] is the operand b [k, n] of x . b.
  const invar_cpu_in b{data(weight), v.strides[1], v.strides[0], v.dtype, 0};
  void *to = mutable_data(packed);
  parallel_for(panels, 1 + (1 << 15) / (k * INVAR_CPU_PANEL + 1), [&](int64_t begin, int64_t end) {
    stage1_ok(stage1().pack(&b, n, k, to, begin, end), "pack");
  });
  return packed;
}

Tensor op_linear_packed(const Tensor &input, const Tensor &packed, int64_t out_features,
                        const std::optional<Tensor> &bias) {
  const char *op = "linear_packed";
  const View vx = view(input);
  const View vp = view(packed);
  Why why = supported(input, vx) && supported(packed, vp) ? Why::none : Why::dtype;
  if (why == Why::none && vx.dtype != vp.dtype) {
    why = Why::mixed;
  }
  require(op, why, arg("input", input), arg("packed", packed));
  const bool is_packed = vp.dim == 3 && vp.sizes[2] == INVAR_CPU_PANEL && out_features >= 0 &&
                         vp.sizes[0] == stage1().mm_panels(out_features);
  bool contiguous = false;
  torch_ok(::aoti_torch_is_contiguous(packed.get(), &contiguous), op);
  if (!is_packed || !contiguous || vx.dim == 0 || vx.sizes[vx.dim - 1] != vp.sizes[1]) {
    fail(op, " expects what pack(weight) gave, out_features = weight.size(0) and input[..., k]; got ",
         describe("input", vx), ", ", describe("packed", vp), ", out_features: ", out_features);
  }
  if (bias) {
    const View vb = view(*bias);
    why = !supported(*bias, vb) ? Why::dtype
          : vb.dtype != vx.dtype ? Why::mixed
          : vb.dim == 1 && vb.sizes[0] == out_features ? Why::none
                                                       : Why::shape;
    require(op, why, arg("input", input), arg("bias", *bias));
  }
  Tensor out = empty(linear_sizes(input, out_features), vx.torch_dtype);
  linear_into(input, packed, true, out_features, bias, out);
  return out;
}

Tensor reduce_op(const char *op, Reduction kind, const Tensor &self,
                 const std::optional<Sizes> &dims, bool keepdim,
                 const std::optional<ScalarType> &dtype) {
  std::vector<bool> mask;
  require(op, check_reduce(self, dims, mask), arg("self", self));
  Tensor out = empty(reduce_sizes(self, mask, keepdim), result_dtype(op, self, dtype));
  reduce(kind, self, mask, out, keepdim, op);
  return out;
}

Tensor op_sum(const Tensor &self, std::optional<Sizes> dim, bool keepdim,
              std::optional<ScalarType> dtype) {
  return reduce_op("sum", Reduction::sum, self, dim, keepdim, dtype);
}

Tensor op_mean(const Tensor &self, std::optional<Sizes> dim, bool keepdim,
               std::optional<ScalarType> dtype) {
  return reduce_op("mean", Reduction::mean, self, dim, keepdim, dtype);
}

Tensor softmax_op(const char *op, Softmax kind, const Tensor &self, int64_t dim,
                  const std::optional<ScalarType> &dtype) {
  View v = view(self);
  require(op, supported(self, v) ? Why::none : Why::dtype, arg("self", self));
  const std::optional<int64_t> along = wrap_dim(dim, v.dim);
  if (!along) {
    fail(op, ": dim ", dim, " is out of range for ", describe("self", v));
  }
  v.torch_dtype = result_dtype(op, self, dtype);
  Tensor out = empty_like(v);
  softmax(kind, self, *along, out, op);
  return out;
}

Tensor op_softmax(const Tensor &self, int64_t dim, std::optional<ScalarType> dtype) {
  return softmax_op("softmax", Softmax::plain, self, dim, dtype);
}

Tensor op_log_softmax(const Tensor &self, int64_t dim, std::optional<ScalarType> dtype) {
  return softmax_op("log_softmax", Softmax::log, self, dim, dtype);
}

void check_norm(const char *op, const Tensor &x, const View &v, const Sizes &shape,
                const std::optional<Tensor> &weight) {
  require(op, supported(x, v) ? Why::none : Why::dtype, arg("input", x));
  const auto n = static_cast<int64_t>(shape.size());
  bool fits = n > 0 && n <= v.dim;
  for (int64_t i = 0; fits && i < n; i++) {
    fits = shape[static_cast<size_t>(i)] == v.sizes[v.dim - n + i];
  }
  if (!fits) {
    fail(op, ": normalized_shape must be the last sizes of the input; got ", describe("input", v),
         " and ", n, " sizes in normalized_shape");
  }
  if (weight) {
    const View w = view(*weight);
    require(op, supported(*weight, w) ? Why::none : Why::dtype, arg("weight", *weight));
    if (shape_text(w) != shape_text({n, shape.data(), nullptr, 0, 0})) {
      fail(op, ": weight must have the sizes of normalized_shape; got ", describe("weight", w));
    }
  }
}

// eps=None is the epsilon of float32, in which the kernel computes.
float epsilon(const std::optional<double> &eps) {
  return eps ? static_cast<float>(*eps) : std::numeric_limits<float>::epsilon();
}

Tensor op_rms_norm(const Tensor &input, Sizes normalized_shape, const std::optional<Tensor> &weight,
                   std::optional<double> eps) {
  const View v = view(input);
  check_norm("rms_norm", input, v, normalized_shape, weight);
  Tensor out = empty(Sizes(v.sizes, v.sizes + v.dim), v.torch_dtype);
  rms_norm({&input, nullptr, weight ? &*weight : nullptr, &out, nullptr,
            static_cast<int64_t>(normalized_shape.size()), epsilon(eps)},
           "rms_norm");
  return out;
}

std::tuple<Tensor, Tensor> op_add_rms_norm(const Tensor &input, const Tensor &residual,
                                           Sizes normalized_shape,
                                           const std::optional<Tensor> &weight,
                                           std::optional<double> eps) {
  const char *op = "add_rms_norm";
  const View v = view(input);
  const View r = view(residual);
  check_norm(op, input, v, normalized_shape, weight);
  require(op, supported(residual, r) ? (r.dtype == v.dtype ? Why::none : Why::mixed) : Why::dtype,
          arg("input", input), arg("residual", residual));
  if (shape_text(v) != shape_text(r)) {
    fail(op, ": input and residual must have the same sizes; got ", describe("input", v), ", ",
         describe("residual", r));
  }
  const Sizes sizes(v.sizes, v.sizes + v.dim);
  Tensor out = empty(sizes, v.torch_dtype);
  Tensor sum = empty(sizes, v.torch_dtype);
  rms_norm({&input, &residual, weight ? &*weight : nullptr, &out, &sum,
            static_cast<int64_t>(normalized_shape.size()), epsilon(eps)},
           op);
  return {out, sum};
}

// Breaks the contract on purpose; see invar_cpu_control_mm.
Tensor op_control_mm(const Tensor &self, const Tensor &mat2) {
  require("_control_mm", check_mm(self, mat2), arg("self", self), arg("mat2", mat2));
  const View a = view(self);
  const View b = view(mat2);
  const Sizes sizes = mm_sizes(self, mat2);
  Tensor out = empty(sizes, a.torch_dtype);
  invar_cpu_mm_args args{};
  args.m = sizes[0];
  args.n = sizes[1];
  args.k = a.sizes[1];
  args.a = {data(self), a.strides[0], a.strides[1], a.dtype, 0};
  args.b = {data(mat2), b.strides[0], b.strides[1], b.dtype, 0};
  args.out = {mutable_data(out), sizes[1], 1, a.dtype, 0};
  args.alpha = 1.0F;
  stage1_ok(stage1().control_mm(&args), "_control_mm");
  return out;
}

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
  m.def("sum(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None)"
        " -> Tensor");
  m.def("mean(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None)"
        " -> Tensor");
  m.def("softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor");
  m.def("log_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor");
  m.def("rms_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, float? eps=None)"
        " -> Tensor");
  m.def("add_rms_norm(Tensor input, Tensor residual, int[] normalized_shape,"
        " Tensor? weight=None, float? eps=None) -> (Tensor, Tensor)");
  m.def("_control_mm(Tensor self, Tensor mat2) -> Tensor");
}

STABLE_TORCH_LIBRARY_IMPL(batch_invariant_ops, CPU, m) {
  m.impl("mm", TORCH_BOX(&op_mm));
  m.impl("bmm", TORCH_BOX(&op_bmm));
  m.impl("addmm", TORCH_BOX(&op_addmm));
  m.impl("matmul", TORCH_BOX(&op_matmul));
  m.impl("linear", TORCH_BOX(&op_linear));
  m.impl("pack", TORCH_BOX(&op_pack));
  m.impl("linear_packed", TORCH_BOX(&op_linear_packed));
  m.impl("sum", TORCH_BOX(&op_sum));
  m.impl("mean", TORCH_BOX(&op_mean));
  m.impl("softmax", TORCH_BOX(&op_softmax));
  m.impl("log_softmax", TORCH_BOX(&op_log_softmax));
  m.impl("rms_norm", TORCH_BOX(&op_rms_norm));
  m.impl("add_rms_norm", TORCH_BOX(&op_add_rms_norm));
  m.impl("_control_mm", TORCH_BOX(&op_control_mm));
}

}  // namespace
}  // namespace invar
