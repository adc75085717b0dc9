// rms_norm and add_rms_norm: a block for each row, or a warp for each row of at most
// 2048 elements. Each for operands that lie anyhow, and for wide ones: all of one dtype,
// in whole runs at multiples of 16 bytes. The bits are the same.
#include "lanes.cuh"

namespace invar {
namespace {

INVAR_DEVICE float rounded(int32_t dtype, float f) {
  const uint32_t u = narrow(dtype, f);
  if (dtype == INVAR_CUDA_FLOAT32) return float_of(u);
  const uint16_t h = static_cast<uint16_t>(u);
  return dtype == INVAR_CUDA_BFLOAT16 ? BF16::widen(h) : F16::widen(h);
}

// What a norm is of: x, or with a residual x + residual, rounded to the dtype of
// residual_out and stored there as it is read. Each run is asked for once.
struct AnySource {
  const NormParams &p;
  AnyRow x;
  int64_t row, n;

  INVAR_DEVICE AnySource(const NormParams &params, int64_t r)
      : p(params), x(params.x, r, params.cols), row(r), n(params.cols) {}

  INVAR_DEVICE void run(int64_t i, int64_t end, float fill, float (&v)[kRun]) const {
    x.run(i, end, fill, v);
    if (!p.residual.data) return;
    const invar_cuda_out &o = p.residual_out;
    float r[kRun];
    load_run(p.residual.dtype, row_of(p.residual, row), p.residual.col, i, end, fill, r);
    INVAR_UNROLL
    for (int j = 0; j < kRun; j++) v[j] = add(v[j], r[j]);
    store_run(o.dtype, row_of(o, row), o.col, i, end, v);
    INVAR_UNROLL
    for (int j = 0; j < kRun; j++) v[j] = rounded(o.dtype, v[j]);
  }
};

template <class T> struct WideSource {
  typedef typename T::word word;
  const word *x, *residual;  // residual: NULL without one
  word *to;
  int64_t n;

  INVAR_DEVICE WideSource(const NormParams &p, int64_t row)
      : x(static_cast<const word *>(p.x.data) + row * p.x.row), residual(nullptr), to(nullptr),
        n(p.cols) {
    if (!p.residual.data) return;
    residual = static_cast<const word *>(p.residual.data) + row * p.residual.row;
    to = static_cast<word *>(p.residual_out.data) + row * p.residual_out.row;
  }

  INVAR_DEVICE void run(int64_t i, int64_t end, float fill, float (&v)[kRun]) const {
    if (i >= end) {
      INVAR_UNROLL
      for (int j = 0; j < kRun; j++) v[j] = fill;
      return;
    }
    load_wide<T>(x + i, v);
    if (!residual) return;
    float r[kRun];
    load_wide<T>(residual + i, r);
    INVAR_UNROLL
    for (int j = 0; j < kRun; j++) v[j] = T::widen(T::narrow(add(v[j], r[j])));
    store_wide<T>(to + i, v);
  }
};

INVAR_DEVICE float reciprocal_root(const NormParams &p, float squares) {
  return div(1.0f, root(add(div(squares, static_cast<float>(p.cols)), p.eps)));
}

// The row again, times r and weight. A thread reads here what itself read or wrote
// before, so it needs no barrier.
template <class Group>
INVAR_DEVICE void norm_any(const NormParams &p, int64_t row, const Group &g) {
  const float r = reciprocal_root(p, g.total(AnySource(p, row), 0.0f, SquareStep()));
  const bool added = p.residual.data != nullptr;
  const int32_t dtype = added ? p.residual_out.dtype : p.x.dtype;
  const void *from = added ? row_of(p.residual_out, row) : row_of(p.x, row);
  const int64_t step = added ? p.residual_out.col : p.x.col;
  INVAR_ROLLED
  for (int64_t i = g.seat() * kRun; i < p.cols; i += Group::kSeats * kRun) {
    float v[kRun], w[kRun];
    load_run(dtype, from, step, i, p.cols, 0.0f, v);
    if (p.weight.data) load_run(p.weight.dtype, p.weight.data, p.weight.col, i, p.cols, 0.0f, w);
    INVAR_UNROLL
    for (int j = 0; j < kRun; j++) {
      v[j] = mul(v[j], r);
      if (p.weight.data) v[j] = mul(v[j], w[j]);
    }
    store_run(p.out.dtype, row_of(p.out, row), p.out.col, i, p.cols, v);
  }
}

template <class T, class Group>
INVAR_DEVICE void norm_wide(const NormParams &p, int64_t row, const Group &g) {
  const WideSource<T> source(p, row);
  const float r = reciprocal_root(p, g.total(source, 0.0f, SquareStep()));
  const typename T::word *from = source.residual ? source.to : source.x;
  const auto *weight = static_cast<const typename T::word *>(p.weight.data);
  auto *to = static_cast<typename T::word *>(p.out.data) + row * p.out.row;
  INVAR_FEW
  for (int64_t i = g.seat() * kRun; i < p.cols; i += Group::kSeats * kRun) {
    float v[kRun], w[kRun];
    load_wide<T>(from + i, v);
    if (weight) load_wide<T>(weight + i, w);
    INVAR_UNROLL
    for (int j = 0; j < kRun; j++) {
      v[j] = mul(v[j], r);
      if (weight) v[j] = mul(v[j], w[j]);
    }
    store_wide<T>(to + i, v);
  }
}

INVAR_DEVICE int64_t warp_row(const NormParams &p) {
  return p.first + block() * kWarpRows + thread() / 32;
}

}  // namespace
}  // namespace invar

using namespace invar;

INVAR_KERNEL(invar_norm, NormParams, kRowThreads, 1) {
  INVAR_SHARED(shared);
  const BlockGroup g{reinterpret_cast<float *>(shared)};
  norm_any(p, p.first + block(), g);
}

INVAR_KERNEL(invar_norm_wide, NormParams, kRowThreads, 4) {
  INVAR_SHARED(shared);
  const BlockGroup g{reinterpret_cast<float *>(shared)};
  INVAR_BY_DTYPE(p.x.dtype, norm_wide, p, p.first + block(), g)
}

INVAR_KERNEL(invar_norm_warp, NormParams, kRowThreads, 1) {
  if (warp_row(p) < p.rows) norm_any(p, warp_row(p), WarpGroup());
}

INVAR_KERNEL(invar_norm_warp_wide, NormParams, kRowThreads, 4) {
  if (warp_row(p) >= p.rows) return;
  INVAR_BY_DTYPE(p.x.dtype, norm_wide, p, warp_row(p), WarpGroup())
}
