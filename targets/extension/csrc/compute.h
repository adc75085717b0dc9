// The operators themselves, on validated tensors: what the custom operators and
// the routed aten operators share.
#pragma once

#include "tensor.h"
#include "why.h"

namespace invar {

// ---- Checks. Why::none means that the matching function below may be called.

Why check_mm(const Tensor &a, const Tensor &b);
Why check_bmm(const Tensor &a, const Tensor &b);
Why check_mv(const Tensor &a, const Tensor &x);
Why check_dot(const Tensor &x, const Tensor &y);
Why check_matmul(const Tensor &a, const Tensor &b);
// c must have a's dtype and expand to the sizes of the product.
Why check_add(const Tensor &c, const Tensor &a, const Sizes &product);
Why check_linear(const Tensor &x, const Tensor &weight, const std::optional<Tensor> &bias);
// Fills mask with the reduced dimensions; no dims at all means every one.
Why check_reduce(const Tensor &x, const std::optional<Sizes> &dims, std::vector<bool> &mask);

// ---- Sizes of results.

Sizes mm_sizes(const Tensor &a, const Tensor &b);
Sizes bmm_sizes(const Tensor &a, const Tensor &b);
Sizes matmul_sizes(const Tensor &a, const Tensor &b);
Sizes reduce_sizes(const Tensor &x, const std::vector<bool> &mask, bool keepdim);

// ---- Products. out has the right sizes and overlaps no input. An addend c is
// NULL or expands to out.

struct Addend {
  const Tensor *c = nullptr;
  float beta = 1.0F;
  float alpha = 1.0F;
};

void mm_into(const Tensor &a, const Tensor &b, const Addend &add, const Tensor &out);
void bmm_into(const Tensor &a, const Tensor &b, const Addend &add, const Tensor &out);
void mv_into(const Tensor &a, const Tensor &x, const Addend &add, const Tensor &out);
void dot_into(const Tensor &x, const Tensor &y, const Tensor &out);
void matmul_into(const Tensor &a, const Tensor &b, const Tensor &out);

// x[..., k] . weight[n, k]' + bias, where b is the weight itself or packed.
void linear_into(const Tensor &x, const Tensor &b, bool packed, int64_t n,
                 const std::optional<Tensor> &bias, const Tensor &out);

}  // namespace invar
