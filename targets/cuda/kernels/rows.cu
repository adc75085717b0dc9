// sum, mean, softmax, log_softmax. Each in variants with the same bits: a block for each
// row, a warp for each row of at most 2048 elements, and the segments of a row spread
// over blocks, with their results in the workspace. The first two again for rows that
// are wide: whole runs at multiples of 16 bytes, out of the same dtype.
#include "lanes.cuh"

namespace invar {
namespace {

INVAR_DEVICE void store_sum(const RowParams &p, int64_t row, float sum) {
  const float v = p.mean ? div(sum, static_cast<float>(p.cols)) : sum;
  store(p.out, row * p.out.row, v);
}

template <class R, class Group>
INVAR_DEVICE void sum_row(const RowParams &p, int64_t row, const Group &g) {
  const float sum = g.total(R(p.x, row, p.cols), 0.0f, AddStep());
  if (g.seat() == 0) store_sum(p, row, sum);
}

// What each element becomes once the greatest and the sum of a row are known.
struct SoftmaxEnd {
  float top, last;  // last: log of the sum, or its reciprocal
  bool log;
  INVAR_DEVICE SoftmaxEnd(float t, float sum, bool of_log)
      : top(t), last(of_log ? log_of_sum(sum) : div(1.0f, sum)), log(of_log) {}
  INVAR_DEVICE float operator()(float x) const {
    const float d = sub(x, top);
    return log ? sub(d, last) : mul(exp_nonpositive(d), last);
  }
};

// How a run of the result is stored.
struct AnyOut {
  INVAR_DEVICE void operator()(const RowParams &p, int64_t row, int64_t i, int64_t to,
                               const float (&v)[kRun]) const {
    store_run(p.out.dtype, row_of(p.out, row), p.out.col, i, to, v);
  }
};
template <class T> struct WideOut {
  INVAR_DEVICE void operator()(const RowParams &p, int64_t row, int64_t i, int64_t,
                               const float (&v)[kRun]) const {
    store_wide<T>(static_cast<typename T::word *>(p.out.data) + row * p.out.row + i, v);
  }
};

template <class R, class Out>
INVAR_DEVICE void finish_softmax(const RowParams &p, int64_t row, const SoftmaxEnd &end,
                                 int64_t from, int64_t to, int seat, int seats) {
  const R x(p.x, row, p.cols);
  INVAR_ROLLED
  for (int64_t i = from + seat * kRun; i < to; i += seats * kRun) {
    float v[kRun];
    x.run(i, to, 0.0f, v);
    INVAR_UNROLL
    for (int j = 0; j < kRun; j++) v[j] = end(v[j]);
    Out()(p, row, i, to, v);
  }
}

template <class R, class Out, class Group>
INVAR_DEVICE void softmax_row(const RowParams &p, int64_t row, const Group &g) {
  const R x(p.x, row, p.cols);
  const float top = g.top(x, 0, p.cols);
  const float sum = g.total(x, -INFINITY, ExpStep{top});
  const SoftmaxEnd end(top, sum, p.log != 0);
  finish_softmax<R, Out>(p, row, end, 0, p.cols, g.seat(), Group::kSeats);
}

INVAR_DEVICE int64_t warp_row(const RowParams &p) {
  return p.first + block() * kWarpRows + thread() / 32;
}

// The segment that this block has.
struct Segment {
  int64_t id, row, from, to;
  INVAR_DEVICE explicit Segment(const RowParams &p) : id(p.first + block()), row(id / p.segments) {
    from = id % p.segments * kSegment;
    to = from + kSegment < p.cols ? from + kSegment : p.cols;
  }
};

INVAR_DEVICE float top_of_parts(const RowParams &p, int64_t row, const BlockGroup &g) {
  float m = -INFINITY;
  for (int64_t i = g.seat(); i < p.segments; i += BlockGroup::kSeats) {
    m = greater(m, p.maxima[row * p.segments + i]);
  }
  return g.top_of(m);
}

INVAR_DEVICE float sum_of_parts(const RowParams &p, int64_t row) {
  const float *s = p.sums + row * p.segments;
  float sum = s[0];
  for (int64_t i = 1; i < p.segments; i++) sum = add(sum, s[i]);
  return sum;
}

template <class T, class Group>
INVAR_DEVICE void sum_wide(const RowParams &p, int64_t row, const Group &g) {
  sum_row<WideRow<T>>(p, row, g);
}
template <class T, class Group>
INVAR_DEVICE void softmax_wide(const RowParams &p, int64_t row, const Group &g) {
  softmax_row<WideRow<T>, WideOut<T>>(p, row, g);
}

}  // namespace
}  // namespace invar

using namespace invar;

#define INVAR_BLOCK_KERNEL(name, blocks)                      \
  INVAR_KERNEL(name, RowParams, kRowThreads, blocks) {        \
    INVAR_SHARED(shared);                                     \
    const BlockGroup g{reinterpret_cast<float *>(shared)};

#define INVAR_WARP_KERNEL(name, blocks)                       \
  INVAR_KERNEL(name, RowParams, kRowThreads, blocks) {        \
    const WarpGroup g;                                        \
    if (warp_row(p) >= p.rows) return;

INVAR_BLOCK_KERNEL(invar_sum, 2)
  sum_row<AnyRow>(p, p.first + block(), g);
}
INVAR_BLOCK_KERNEL(invar_sum_wide, 4)
  INVAR_BY_DTYPE(p.x.dtype, sum_wide, p, p.first + block(), g)
}
INVAR_WARP_KERNEL(invar_sum_warp, 2)
  sum_row<AnyRow>(p, warp_row(p), g);
}
INVAR_WARP_KERNEL(invar_sum_warp_wide, 4)
  INVAR_BY_DTYPE(p.x.dtype, sum_wide, p, warp_row(p), g)
}

INVAR_BLOCK_KERNEL(invar_softmax, 2)
  softmax_row<AnyRow, AnyOut>(p, p.first + block(), g);
}
INVAR_BLOCK_KERNEL(invar_softmax_wide, 4)
  INVAR_BY_DTYPE(p.x.dtype, softmax_wide, p, p.first + block(), g)
}
INVAR_WARP_KERNEL(invar_softmax_warp, 2)
  softmax_row<AnyRow, AnyOut>(p, warp_row(p), g);
}
INVAR_WARP_KERNEL(invar_softmax_warp_wide, 4)
  INVAR_BY_DTYPE(p.x.dtype, softmax_wide, p, warp_row(p), g)
}

INVAR_BLOCK_KERNEL(invar_sum_part, 2)
  const Segment s(p);
  const float v = g.segment(AnyRow(p.x, s.row, p.cols), s.from, s.to, 0.0f, AddStep());
  if (g.seat() == 0) p.sums[s.id] = v;
}
INVAR_BLOCK_KERNEL(invar_top_part, 2)
  const Segment s(p);
  const float v = g.top(AnyRow(p.x, s.row, p.cols), s.from, s.to);
  if (g.seat() == 0) p.maxima[s.id] = v;
}
INVAR_BLOCK_KERNEL(invar_exp_part, 1)
  const Segment s(p);
  const ExpStep step{top_of_parts(p, s.row, g)};
  const float v = g.segment(AnyRow(p.x, s.row, p.cols), s.from, s.to, -INFINITY, step);
  if (g.seat() == 0) p.sums[s.id] = v;
}
INVAR_BLOCK_KERNEL(invar_softmax_part, 2)
  const Segment s(p);
  const float top = top_of_parts(p, s.row, g);
  const SoftmaxEnd end(top, sum_of_parts(p, s.row), p.log != 0);
  finish_softmax<AnyRow, AnyOut>(p, s.row, end, s.from, s.to, g.seat(), BlockGroup::kSeats);
}

// A thread for each row: its segments, one after the other.
INVAR_KERNEL(invar_sum_end, RowParams, kRowThreads, 1) {
  const int64_t row = p.first + block() * kRowThreads + thread();
  if (row < p.rows) store_sum(p, row, sum_of_parts(p, row));
}
