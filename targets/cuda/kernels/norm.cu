// rms_norm and add_rms_norm: a block for each row, or a warp for each row of at most
// 2048 elements, with the same bits.
#include "lanes.cuh"

namespace invar {
namespace {

// x + residual, rounded to the dtype of residual_out: the norm is of the values that
// the caller sees there.
template <class T> struct Added {
  Row<T> x;
  const NormParams &p;
  const void *residual;
  void *to;
  int64_t n;

  INVAR_DEVICE Added(const NormParams &params, int64_t row)
      : x(params.x, row, params.cols), p(params), residual(row_of(params.residual, row)),
        to(row_of(params.residual_out, row)), n(params.cols) {}

  // Stores the sums as it goes: each is asked for once.
  INVAR_DEVICE void run(int64_t i, int64_t end, float fill, float (&v)[kRun]) const {
    float r[kRun];
    x.run(i, end, fill, v);
    load_run(p.residual.dtype, residual, p.residual.col, i, end, fill, r);
    INVAR_UNROLL
    for (int j = 0; j < kRun; j++) v[j] = add(v[j], r[j]);
    store_run(p.residual_out.dtype, to, p.residual_out.col, i, end, v);
    INVAR_UNROLL
    for (int j = 0; j < kRun; j++) v[j] = rounded(p.residual_out.dtype, v[j]);
  }

  static INVAR_DEVICE float rounded(int32_t dtype, float f) {
    const uint32_t u = narrow(dtype, f);
    if (dtype == INVAR_CUDA_FLOAT32) return float_of(u);
    const uint16_t h = static_cast<uint16_t>(u);
    return dtype == INVAR_CUDA_BFLOAT16 ? BF16::widen(h) : F16::widen(h);
  }
};

// The row again, times r and weight. `dtype` and `from` are x's or residual_out's: a
// thread reads here what itself read or wrote before.
INVAR_DEVICE void scale_row(const NormParams &p, int64_t row, int32_t dtype, const void *from,
                            int64_t step, float r, int seat, int seats) {
  void *to = row_of(p.out, row);
  for (int64_t i = seat * kRun; i < p.cols; i += seats * kRun) {
    float v[kRun];
    load_run(dtype, from, step, i, p.cols, 0.0f, v);
    INVAR_UNROLL
    for (int j = 0; j < kRun; j++) v[j] = mul(v[j], r);
    if (p.weight.data) {
      float w[kRun];
      load_run(p.weight.dtype, p.weight.data, p.weight.col, i, p.cols, 0.0f, w);
      INVAR_UNROLL
      for (int j = 0; j < kRun; j++) v[j] = mul(v[j], w[j]);
    }
    store_run(p.out.dtype, to, p.out.col, i, p.cols, v);
  }
}

INVAR_DEVICE float reciprocal_root(const NormParams &p, float squares) {
  return div(1.0f, root(add(div(squares, static_cast<float>(p.cols)), p.eps)));
}

template <class T, class Group>
INVAR_DEVICE void norm_row(const NormParams &p, int64_t row, const Group &g) {
  if (p.residual.data) {
    const float r = reciprocal_root(p, g.total(Added<T>(p, row), 0.0f, SquareStep()));
    const invar_cuda_out &o = p.residual_out;
    scale_row(p, row, o.dtype, row_of(o, row), o.col, r, g.seat(), Group::kSeats);
    return;
  }
  const Row<T> x(p.x, row, p.cols);
  const float r = reciprocal_root(p, g.total(x, 0.0f, SquareStep()));
  scale_row(p, row, p.x.dtype, x.p, p.x.col, r, g.seat(), Group::kSeats);
}

template <class T> INVAR_DEVICE void norm_block(const NormParams &p, const BlockGroup &g) {
  norm_row<T>(p, p.first + block(), g);
}

INVAR_DEVICE int64_t warp_row(const NormParams &p) {
  return p.first + block() * kWarpRows + thread() / 32;
}

template <class T> INVAR_DEVICE void norm_warp(const NormParams &p) {
  norm_row<T>(p, warp_row(p), WarpGroup());
}

}  // namespace
}  // namespace invar

using namespace invar;

INVAR_KERNEL(invar_norm, NormParams, kRowThreads, 1) {
  INVAR_SHARED(shared);
  const BlockGroup g{reinterpret_cast<float *>(shared)};
  INVAR_BY_DTYPE(p.x.dtype, norm_block, p, g)
}

INVAR_KERNEL(invar_norm_warp, NormParams, kRowThreads, 1) {
  if (warp_row(p) >= p.rows) return;
  INVAR_BY_DTYPE(p.x.dtype, norm_warp, p)
}
