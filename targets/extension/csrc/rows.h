// Row operators over tensors of any strides: which elements make a row is a
// matter of dimensions, and rows are spread over torch's threads.
#pragma once

#include "tensor.h"

namespace invar {

// sum or mean of x over dims (wrapped, no duplicates), all of them when empty,
// into out. out holds the kept dimensions in order, contiguous or not.
enum class Reduction { sum, mean };
void reduce(Reduction kind, const Tensor &x, const std::vector<bool> &reduced, const Tensor &out,
            bool keepdim, const char *op);

// softmax or log_softmax along dim (wrapped); out has x's sizes.
enum class Softmax { plain, log };
void softmax(Softmax kind, const Tensor &x, int64_t dim, const Tensor &out, const char *op);

// rms_norm over the last norm_dims dimensions; with a residual, add_rms_norm.
// out and residual_out are contiguous.
struct Norm {
  const Tensor *x;
  const Tensor *residual;  // NULL: plain rms_norm
  const Tensor *weight;    // NULL: none
  const Tensor *out;
  const Tensor *residual_out;
  int64_t norm_dims;
  float eps;
};
void rms_norm(const Norm &norm, const char *op);

}  // namespace invar
