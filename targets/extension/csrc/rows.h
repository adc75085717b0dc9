// Row operators over tensors of any strides: which elements make a row is a
// matter of dimensions, and rows are spread over torch's threads.
#pragma once

#include "compute.h"

namespace invar {

// sum or mean of x over dims (wrapped, no duplicates), all of them when empty,
// into out. out holds the kept dimensions in order, contiguous or not.
enum class Reduction { sum, mean };
void reduce(Reduction kind, const Arg &x, const Mask &reduced, const Arg &out,
            bool keepdim, const char *op);

// softmax or log_softmax along dim (wrapped); out has x's sizes.
enum class Softmax { plain, log };
void softmax(Softmax kind, const Arg &x, int64_t dim, const Arg &out, const char *op);

// rms_norm over the last norm_dims dimensions; with a residual, add_rms_norm.
// out and residual_out are contiguous.
struct Norm {
  const Arg *x;
  const Arg *residual;  // NULL: plain rms_norm
  const Arg *weight;    // NULL: none
  const Arg *out;
  const Arg *residual_out;
  int64_t norm_dims;
  float eps;
};
void rms_norm(const Norm &norm, const char *op);

}  // namespace invar
