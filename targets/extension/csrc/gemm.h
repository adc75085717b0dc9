// out = alpha * (a . b) + beta * c for a batch of matrices of any strides.
#pragma once

#include "tensor.h"

namespace invar {

// A matrix of a batch. data points at element (0, 0) of the first one.
struct Operand {
  const void *data = nullptr;
  int32_t dtype = 0;
  int64_t row = 0;
  int64_t col = 0;
};

// One batch dimension: its size and the step of each operand along it. A step of
// zero is a broadcast.
struct BatchDim {
  int64_t size = 1;
  int64_t a = 0;
  int64_t b = 0;
  int64_t c = 0;
  int64_t out = 0;
};

struct Gemm {
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  Operand a;
  Operand b;
  Operand c;  // data is NULL when there is none
  Operand out;
  void *out_data = nullptr;  // out.data is not used
  float alpha = 1.0F;
  float beta = 0.0F;
  bool b_packed = false;
  Small<BatchDim, 4> batch;  // outermost first
};

// Computes it on torch's threads. The split is chosen for speed alone: the
// contract makes the bits independent of it.
void run(Gemm &&gemm, const char *op);

// pack: the panels of a weight [n, k]; packed has their size.
void pack_into(const Arg &weight, const Arg &packed);

// Breaks the contract on purpose; see invar_cpu_control_mm.
void control_into(const Arg &a, const Arg &b, const Arg &out);

}  // namespace invar
