// Sums and softmax along rows.
//
// A row is summed in 64 lanes: lane j adds the columns j, j + 64, j + 128, ... in this
// order, from +0. Then lane i takes lane i + h for h = 32, 16, 8, 4, 2, 1.
#pragma once

#include "convert.h"
#include "elementary.h"
#include "partial.h"

namespace {

constexpr int kLanes = 64;
constexpr int kLaneVectors = kLanes / VL;

struct lanes {
  vf v[kLaneVectors];
};

inline float total(lanes l) {
  for (int h = kLaneVectors / 2; h > 0; h /= 2) {
    for (int j = 0; j < h; j++) l.v[j] = add(l.v[j], l.v[j + h]);
  }
  return fold(l.v[0]);
}

inline lanes empty_lanes() {
  lanes l;
  for (int j = 0; j < kLaneVectors; j++) l.v[j] = splat(0.0f);
  return l;
}

// Gives f the run x in pieces of 64 columns: f(lanes, piece, column). The last is filled
// up with `fill`, which must add +0, so only the end of a row may be shorter than 64.
template <class F> inline void over_lanes(lanes &l, const float_any *x, int64_t n, float fill, F f) {
  int64_t k = 0;
#pragma GCC unroll 2
  for (; k + kLanes <= n; k += kLanes) f(l, x + k, k);
  if (k < n) {
    alignas(64) float t[kLanes];
    for (int j = 0; j < kLanes; j += VL) {
      int64_t left = n - k - j;
      vf v = splat(fill);
      if (left >= VL) v = load(x + k + j);
      else if (left > 0) v = load_some(x + k + j, left, fill);
      store(t + j, v);
    }
    f(l, static_cast<const float_any *>(t), k);
  }
}

inline lanes add_up(lanes l, const float_any *x, int64_t n) {
  over_lanes(l, x, n, 0.0f, [](lanes &s, const float_any *p, int64_t) {
    for (int j = 0; j < kLaneVectors; j++) s.v[j] = add(s.v[j], load(p + j * VL));
  });
  return l;
}

inline float sum_of_squares(const float_any *x, int64_t n) {
  lanes l = empty_lanes();
  over_lanes(l, x, n, 0.0f, [](lanes &s, const float_any *p, int64_t) {
    for (int j = 0; j < kLaneVectors; j++) {
      vf v = load(p + j * VL);
      s.v[j] = fma(v, v, s.v[j]);
    }
  });
  return total(l);
}

// The largest of the row; any value at all when one is NaN, for then the sum that
// follows is NaN. A zero comes out as +0 whatever the order.
inline float max_of(const float_any *x, int64_t n) {
  const float lowest = -__builtin_inff();
  vf m[4] = {splat(lowest), splat(lowest), splat(lowest), splat(lowest)};
  int64_t k = 0;
  for (; k + 4 * VL <= n; k += 4 * VL) {
    for (int j = 0; j < 4; j++) m[j] = max(m[j], load(x + k + j * VL));
  }
  for (; k + VL <= n; k += VL) m[0] = max(m[0], load(x + k));
  if (k < n) m[1] = max(m[1], load_some(x + k, n - k, lowest));
  return largest(max(max(m[0], m[1]), max(m[2], m[3]))) + 0.0f;
}

// e = exp(x - top), kept in `to` unless that is NULL; the sum of e
inline float sum_of_exp(const float_any *x, int64_t n, float top, float_any *to) {
  const vf t = splat(top);
  lanes l = empty_lanes();
  over_lanes(l, x, n, -__builtin_inff(), [=](lanes &s, const float_any *p, int64_t k) {
    vf e[kLaneVectors];
    for (int j = 0; j < kLaneVectors; j++) {
      e[j] = exp_nonpositive(sub(load(p + j * VL), t));
      s.v[j] = add(s.v[j], e[j]);
      if (to && k + kLanes <= n) store(to + k + j * VL, e[j]);
    }
    for (int j = 0; to && k + kLanes > n && j < kLaneVectors; j++) {
      int64_t left = n - k - j * VL;
      if (left >= VL) store(to + k + j * VL, e[j]);
      else if (left > 0) store_some(to + k + j * VL, left, e[j]);
    }
  });
  return total(l);
}

// to[i] = f(x[i]) with NaN canonical
template <class F> inline void map(const float_any *x, int64_t n, float_any *to, F f) {
  int64_t i = 0;
  for (; i + VL <= n; i += VL) store(to + i, canonical(f(load(x + i))));
  if (i < n) store_some(to + i, n - i, canonical(f(load_some(x + i, n - i, 0.0f))));
}

inline void softmax_row(const float_any *x, int64_t n, float_any *to) {
  float inverse = 1.0f / sum_of_exp(x, n, max_of(x, n), to);
  const vf v = splat(inverse);
  map(to, n, to, [=](vf e) { return mul(e, v); });
}

inline void log_softmax_row(const float_any *x, int64_t n, float_any *to) {
  float top = max_of(x, n);
  const vf t = splat(top), l = splat(log_of_sum(sum_of_exp(x, n, top, nullptr)));
  map(x, n, to, [=](vf v) { return sub(sub(v, t), l); });
}

// Rows [begin, end) of x as float32 rows without gaps, in their place or in scratch,
// a block at a time; then the same for out. f(row of x, row of out, row number).
template <class F>
inline void each_row(const invar_cpu_in &x, const invar_cpu_out &out, int64_t cols, int64_t begin,
                     int64_t end, float *scratch, F f) {
  bool x_direct = is_direct(x.col, x.dtype, cols), out_direct = is_direct(out.col, out.dtype, cols);
  int64_t ld = row_stride(cols), block = row_block(x.col != 1 || out.col != 1, cols);
  if (x_direct && out_direct) block = most(1, end - begin);
  for (int64_t r = begin; r < end; r += block) {
    int64_t rows = least(block, end - r);
    if (!x_direct) widen_matrix(x, r, rows, 0, cols, scratch, ld);
    for (int64_t i = 0; i < rows; i++) {
      float_any *room = scratch + i * ld;
      auto *from = reinterpret_cast<const float_any *>(element(x, r + i, 0));
      auto *to = reinterpret_cast<float_any *>(element(out, r + i, 0));
      f(x_direct ? from : room, out_direct ? to : room, r + i);
    }
    for (int64_t i = 0; !out_direct && i < rows; i++) {
      narrow(scratch + i * ld, cols, element(out, r + i, 0), out.dtype, out.col);
    }
  }
}

void softmax(const invar_cpu_row_args *g, bool logarithm, int64_t begin, int64_t end,
             float *scratch) {
  auto row = logarithm ? log_softmax_row : softmax_row;
  each_row(g->x, g->out, g->cols, begin, end, scratch,
           [=](const float_any *x, float_any *to, int64_t) { row(x, g->cols, to); });
}

// Rows that are not as the lanes want them come in by pieces, for the lanes can wait:
// a reduction over many rows of a matrix reads it in bands, not column by column.
void sum(const invar_cpu_row_args *g, bool mean, int64_t begin, int64_t end, float *scratch) {
  const invar_cpu_in &x = g->x;
  bool direct = is_direct(x.col, x.dtype, g->cols);
  int64_t block = x.col == 1 ? 1 : kRowBlock, piece = kSumPiece;
  for (int64_t r = begin; direct && r < end; r++) {
    auto *from = reinterpret_cast<const float_any *>(element(x, r, 0));
    float s = total(add_up(empty_lanes(), from, g->cols));
    put(element(g->out, r, 0), g->out.dtype, mean ? s / float(g->cols) : s);
  }
  for (int64_t r = begin; !direct && r < end; r += block) {
    int64_t rows = least(block, end - r);
    lanes l[kRowBlock];
    for (int64_t i = 0; i < rows; i++) l[i] = empty_lanes();
    for (int64_t c = 0; c < g->cols; c += piece) {
      int64_t n = least(piece, g->cols - c), ld = row_stride(n);
      widen_matrix(x, r, rows, c, n, scratch, ld);
      for (int64_t i = 0; i < rows; i++) l[i] = add_up(l[i], scratch + i * ld, n);
    }
    for (int64_t i = 0; i < rows; i++) {
      float s = total(l[i]);
      put(element(g->out, r + i, 0), g->out.dtype, mean ? s / float(g->cols) : s);
    }
  }
}

}  // namespace
