// rms_norm and add_rms_norm.
#pragma once

#include "rows.h"

namespace {

inline void rms_row(const float_any *x, const float_any *weight, int64_t n, float eps,
                    float_any *to) {
  float mean = sum_of_squares(x, n) / float(n);
  const vf r = splat(1.0f / __builtin_sqrtf(mean + eps));
  if (!weight) {
    map(x, n, to, [=](vf v) { return mul(v, r); });
    return;
  }
  int64_t i = 0;
  for (; i + VL <= n; i += VL) {
    store(to + i, canonical(mul(mul(load(x + i), r), load(weight + i))));
  }
  if (i < n) {
    vf v = load_some(x + i, n - i, 0.0f), w = load_some(weight + i, n - i, 0.0f);
    store_some(to + i, n - i, canonical(mul(mul(v, r), w)));
  }
}

// x += residual, rounded to the dtype of residual_out and stored there: the norm is of
// the values that the caller sees.
inline void add_residual(const invar_cpu_norm_args &g, int64_t row, const float_any *x,
                         float_any *sum) {
  constexpr int64_t kPiece = 256;
  alignas(64) float t[kPiece];
  alignas(64) char rounded[kPiece * 4];
  const invar_cpu_out &out = g.residual_out;
  for (int64_t c = 0; c < g.cols; c += kPiece) {
    int64_t n = least(kPiece, g.cols - c);
    widen(element(g.residual, row, c), g.residual.dtype, g.residual.col, n, t);
    int64_t i = 0;
    for (; i + VL <= n; i += VL) store(t + i, add(load(x + c + i), load(t + i)));
    for (; i < n; i++) t[i] = x[c + i] + t[i];
    narrow(t, n, rounded, out.dtype, 1);
    widen(rounded, out.dtype, 1, n, t);
    narrow(t, n, element(out, row, c), out.dtype, out.col);
    __builtin_memcpy(sum + c, t, size_t(n) * 4);
  }
}

void norm(const invar_cpu_norm_args *g, int64_t begin, int64_t end, float *scratch) {
  int64_t n = g->cols, ld = row_stride(n);
  const float_any *weight = static_cast<const float_any *>(g->weight.data);
  if (weight && !is_direct(g->weight.col, g->weight.dtype, n)) {
    widen(static_cast<const char *>(g->weight.data), g->weight.dtype, g->weight.col, n, scratch);
    weight = scratch;
  }
  float *sum = scratch + ld, *rows = sum + ld;
  each_row(g->x, g->out, n, begin, end, rows,
           [=](const float_any *x, float_any *to, int64_t row) {
             if (g->residual.data) {
               add_residual(*g, row, x, sum);
               x = sum;
             }
             rms_row(x, weight, n, g->eps, to);
           });
}

}  // namespace
