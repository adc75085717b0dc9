// sum, mean, softmax, log_softmax. Each in three variants with the same bits: a block
// for each row, a warp for each row of at most 2048 elements, and the segments of a
// row spread over blocks, with their results in the workspace.
#include "lanes.cuh"

namespace invar {
namespace {

INVAR_DEVICE void store_sum(const RowParams &p, int64_t row, float sum) {
  const float v = p.mean ? div(sum, static_cast<float>(p.cols)) : sum;
  store(p.out, row * p.out.row, v);
}

template <class T, class Group>
INVAR_DEVICE void sum_row(const RowParams &p, int64_t row, const Group &g) {
  const float sum = g.total(Row<T>(p.x, row, p.cols), 0.0f, AddStep());
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

template <class T>
INVAR_DEVICE void finish_softmax(const RowParams &p, int64_t row, const SoftmaxEnd &end,
                                 int64_t from, int64_t to, int seat, int seats) {
  const Row<T> x(p.x, row, p.cols);
  for (int64_t i = from + seat * kRun; i < to; i += seats * kRun) {
    float v[kRun];
    x.run(i, to, 0.0f, v);
    INVAR_UNROLL
    for (int j = 0; j < kRun; j++) v[j] = end(v[j]);
    store_run(p.out.dtype, row_of(p.out, row), p.out.col, i, to, v);
  }
}

template <class T, class Group>
INVAR_DEVICE void softmax_row(const RowParams &p, int64_t row, const Group &g) {
  const Row<T> x(p.x, row, p.cols);
  const float top = g.top(x, 0, p.cols);
  const float sum = g.total(x, -INFINITY, ExpStep{top});
  finish_softmax<T>(p, row, SoftmaxEnd(top, sum, p.log != 0), 0, p.cols, g.seat(), Group::kSeats);
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

template <class T> INVAR_DEVICE void sum_part(const RowParams &p, const BlockGroup &g) {
  const Segment s(p);
  const float v = g.segment(Row<T>(p.x, s.row, p.cols), s.from, s.to, 0.0f, AddStep());
  if (g.seat() == 0) p.sums[s.id] = v;
}

template <class T> INVAR_DEVICE void top_part(const RowParams &p, const BlockGroup &g) {
  const Segment s(p);
  const float v = g.top(Row<T>(p.x, s.row, p.cols), s.from, s.to);
  if (g.seat() == 0) p.maxima[s.id] = v;
}

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

template <class T> INVAR_DEVICE void exp_part(const RowParams &p, const BlockGroup &g) {
  const Segment s(p);
  const ExpStep step{top_of_parts(p, s.row, g)};
  const float v = g.segment(Row<T>(p.x, s.row, p.cols), s.from, s.to, -INFINITY, step);
  if (g.seat() == 0) p.sums[s.id] = v;
}

template <class T> INVAR_DEVICE void softmax_part(const RowParams &p, const BlockGroup &g) {
  const Segment s(p);
  const float top = top_of_parts(p, s.row, g);
  const SoftmaxEnd end(top, sum_of_parts(p, s.row), p.log != 0);
  finish_softmax<T>(p, s.row, end, s.from, s.to, g.seat(), BlockGroup::kSeats);
}

template <class T> INVAR_DEVICE void sum_block(const RowParams &p, const BlockGroup &g) {
  sum_row<T>(p, p.first + block(), g);
}
template <class T> INVAR_DEVICE void sum_warp(const RowParams &p) {
  sum_row<T>(p, warp_row(p), WarpGroup());
}
template <class T> INVAR_DEVICE void softmax_block(const RowParams &p, const BlockGroup &g) {
  softmax_row<T>(p, p.first + block(), g);
}
template <class T> INVAR_DEVICE void softmax_warp(const RowParams &p) {
  softmax_row<T>(p, warp_row(p), WarpGroup());
}

}  // namespace
}  // namespace invar

using namespace invar;

#define INVAR_ROW_KERNEL(name, body)                          \
  INVAR_KERNEL(name, RowParams, kRowThreads, 1) {             \
    INVAR_SHARED(shared);                                     \
    const BlockGroup g{reinterpret_cast<float *>(shared)};    \
    INVAR_BY_DTYPE(p.x.dtype, body, p, g)                     \
  }

INVAR_ROW_KERNEL(invar_sum, sum_block)
INVAR_ROW_KERNEL(invar_softmax, softmax_block)
INVAR_ROW_KERNEL(invar_sum_part, sum_part)
INVAR_ROW_KERNEL(invar_top_part, top_part)
INVAR_ROW_KERNEL(invar_exp_part, exp_part)
INVAR_ROW_KERNEL(invar_softmax_part, softmax_part)

INVAR_KERNEL(invar_sum_warp, RowParams, kRowThreads, 1) {
  if (warp_row(p) >= p.rows) return;
  INVAR_BY_DTYPE(p.x.dtype, sum_warp, p)
}

INVAR_KERNEL(invar_softmax_warp, RowParams, kRowThreads, 1) {
  if (warp_row(p) >= p.rows) return;
  INVAR_BY_DTYPE(p.x.dtype, softmax_warp, p)
}

// A thread for each row: its segments, one after the other.
INVAR_KERNEL(invar_sum_end, RowParams, kRowThreads, 1) {
  const int64_t row = p.first + block() * kRowThreads + thread();
  if (row < p.rows) store_sum(p, row, sum_of_parts(p, row));
}
