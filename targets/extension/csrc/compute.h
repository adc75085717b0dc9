// The operators themselves, on validated tensors: what the custom operators and
// the routed aten operators share.
#pragma once

#include "tensor.h"
#include "why.h"

#include <bitset>

namespace invar {

// Dimensions of a tensor as bits; torch itself reduces no tensor of more than 64.
using Mask = std::bitset<64>;

// ---- Checks. Why::none means that the matching function below may be called.

Why check_mm(const Arg &a, const Arg &b);
Why check_bmm(const Arg &a, const Arg &b);
Why check_mv(const Arg &a, const Arg &x);
Why check_dot(const Arg &x, const Arg &y);
Why check_matmul(const Arg &a, const Arg &b);
// c must have a's dtype and expand to the sizes of the product.
Why check_add(const Arg &c, const Arg &a, const Sizes &product);
Why check_linear(const Arg &x, const Arg &weight, const Arg *bias);
// Fills mask with the reduced dimensions; no dims at all means every one.
Why check_reduce(const Arg &x, const int64_t *dims, size_t count, Mask &mask);
inline Why check_reduce(const Arg &x, const std::optional<List> &dims, Mask &mask) {
  return dims ? check_reduce(x, dims->data(), dims->size(), mask)
              : check_reduce(x, nullptr, 0, mask);
}

// ---- Sizes of results.

Sizes mm_sizes(const Arg &a, const Arg &b);
Sizes bmm_sizes(const Arg &a, const Arg &b);
Sizes matmul_sizes(const Arg &a, const Arg &b);
Sizes reduce_sizes(const Arg &x, const Mask &mask, bool keepdim);

// ---- Products. out has the right sizes and overlaps no input. An addend c is
// NULL or expands to out.

struct Addend {
  const Arg *c = nullptr;
  float beta = 1.0F;
  float alpha = 1.0F;
};

void mm_into(const Arg &a, const Arg &b, const Addend &add, const Arg &out);
void bmm_into(const Arg &a, const Arg &b, const Addend &add, const Arg &out);
void mv_into(const Arg &a, const Arg &x, const Addend &add, const Arg &out);
void dot_into(const Arg &x, const Arg &y, const Arg &out);
void matmul_into(const Arg &a, const Arg &b, const Arg &out);

// x[..., k] . weight[n, k]' + bias, where b is the weight itself or packed.
void linear_into(const Arg &x, const Arg &b, bool packed, int64_t n,
                 const Arg *bias, const Arg &out);

}  // namespace invar
