// Reductions along a row, in the one order of docs/contract-cuda.md.
//
// A segment of a row is summed in 2048 lanes: lane j takes the elements j, j + 2048,
// ... of the segment in this order, from +0. Then neighbours are added: lanes 2i and
// 2i + 1, of the results again 2i and 2i + 1, until one is left. A thread has eight
// lanes that follow on each other, so the first three rounds happen in it, the next
// five in its warp, the last three across warps.
#pragma once

#include <math.h>

#include "convert.cuh"
#include "elementary.cuh"

namespace invar {

// A row of any dtype and step.
struct AnyRow {
  int32_t dtype;
  const void *p;
  int64_t step, n;

  INVAR_DEVICE AnyRow(const invar_cuda_in &x, int64_t row, int64_t cols)
      : dtype(x.dtype), p(row_of(x, row)), step(x.col), n(cols) {}

  INVAR_DEVICE void run(int64_t i, int64_t end, float fill, float (&v)[kRun]) const {
    load_run(dtype, p, step, i, end, fill, v);
  }
};

// A row that is made of whole runs at multiples of 16 bytes. Same values, fewer
// instructions and registers; the host says which rows are (host/rows.cpp).
template <class T> struct WideRow {
  const typename T::word *p;
  int64_t n;

  INVAR_DEVICE WideRow(const invar_cuda_in &x, int64_t row, int64_t cols)
      : p(static_cast<const typename T::word *>(x.data) + row * x.row), n(cols) {}

  INVAR_DEVICE void run(int64_t i, int64_t end, float fill, float (&v)[kRun]) const {
    if (i < end) {
      load_wide<T>(p + i, v);
      return;
    }
    INVAR_UNROLL
    for (int j = 0; j < kRun; j++) v[j] = fill;
  }
};

INVAR_DEVICE float neighbours(const float (&l)[8]) {
  return add(add(add(l[0], l[1]), add(l[2], l[3])), add(add(l[4], l[5]), add(l[6], l[7])));
}

// Every thread of the warp gets the sum: a + b = b + a, so both sides of each
// exchange have the same bits.
INVAR_DEVICE float sum_of_warp(float v) {
  INVAR_UNROLL
  for (int mask = 1; mask < 32; mask *= 2) v = add(v, shuffle_xor(v, mask));
  return v;
}

INVAR_DEVICE float greater(float a, float b) { return a > b ? a : b; }

INVAR_DEVICE float max_of_warp(float v) {
  INVAR_UNROLL
  for (int mask = 1; mask < 32; mask *= 2) v = greater(v, shuffle_xor(v, mask));
  return v;
}

// A row that a whole block works on.
struct BlockGroup {
  float *slots;  // 8 floats of shared memory

  static INVAR_DEVICE int seat() { return thread(); }
  static constexpr int kSeats = kRowThreads;

  template <class R, class Step>
  INVAR_DEVICE float segment(const R &row, int64_t from, int64_t to, float fill, Step step) const {
    float l[kRun];
    INVAR_UNROLL
    for (int j = 0; j < kRun; j++) l[j] = 0.0f;
    INVAR_FEW
    for (int64_t i = from + seat() * kRun; i < to; i += kLanes) {
      float v[kRun];
      row.run(i, to, fill, v);
      INVAR_UNROLL
      for (int j = 0; j < kRun; j++) l[j] = step(l[j], v[j]);
    }
    float t[8];
    spread(sum_of_warp(neighbours(l)), t);
    return neighbours(t);
  }

  // All segments, one after the other.
  template <class R, class Step>
  INVAR_DEVICE float total(const R &row, float fill, Step step) const {
    float sum = segment(row, 0, row.n < kSegment ? row.n : kSegment, fill, step);
    for (int64_t from = kSegment; from < row.n; from += kSegment) {
      const int64_t to = from + kSegment;
      sum = add(sum, segment(row, from, to < row.n ? to : row.n, fill, step));
    }
    return sum;
  }

  template <class R> INVAR_DEVICE float top(const R &row, int64_t from, int64_t to) const {
    float m = -INFINITY;
    INVAR_ROLLED
    for (int64_t i = from + seat() * kRun; i < to; i += kLanes) {
      float v[kRun];
      row.run(i, to, -INFINITY, v);
      INVAR_UNROLL
      for (int j = 0; j < kRun; j++) m = greater(m, v[j]);
    }
    return top_of(m);
  }

  // The greatest of one value a thread; a zero as +0.
  INVAR_DEVICE float top_of(float m) const {
    float t[8];
    spread(max_of_warp(m), t);
    INVAR_UNROLL
    for (int w = 1; w < 8; w++) t[0] = greater(t[0], t[w]);
    return add(t[0], 0.0f);
  }

  // t becomes the values of the eight warps, in every thread.
  INVAR_DEVICE void spread(float v, float (&t)[8]) const {
    if (thread() % 32 == 0) slots[thread() / 32] = v;
    barrier();
    INVAR_UNROLL
    for (int w = 0; w < 8; w++) t[w] = slots[w];
    barrier();
  }
};

// A row of at most 2048 elements that one warp works on: it takes the seats of the
// eight warps of a block in turn. Each lane has one element at most.
struct WarpGroup {
  static INVAR_DEVICE int seat() { return thread() % 32; }
  static constexpr int kSeats = 32;

  template <class R, class Step>
  INVAR_DEVICE float total(const R &row, float fill, Step step) const {
    float sum = 0.0f;  // of the seats of warp seat() % 8
    INVAR_ROLLED
    for (int w = 0; w < 8 && w * 32 * kRun < row.n; w++) {
      float v[kRun];
      row.run((w * 32 + seat()) * kRun, row.n, fill, v);
      INVAR_UNROLL
      for (int j = 0; j < kRun; j++) v[j] = step(0.0f, v[j]);
      const float one = sum_of_warp(neighbours(v));
      if (seat() % 8 == w) sum = one;
    }
    INVAR_UNROLL
    for (int mask = 1; mask < 8; mask *= 2) sum = add(sum, shuffle_xor(sum, mask));
    return sum;
  }

  template <class R> INVAR_DEVICE float top(const R &row, int64_t from, int64_t to) const {
    float m = -INFINITY;
    INVAR_ROLLED
    for (int64_t i = from + seat() * kRun; i < to; i += 32 * kRun) {
      float v[kRun];
      row.run(i, to, -INFINITY, v);
      INVAR_UNROLL
      for (int j = 0; j < kRun; j++) m = greater(m, v[j]);
    }
    return add(max_of_warp(m), 0.0f);
  }
};

// Calls body<T>(...) for the type of a dtype.
#define INVAR_BY_DTYPE(dtype, body, ...)          \
  if ((dtype) == INVAR_CUDA_FLOAT32) {            \
    body<F32>(__VA_ARGS__);                       \
  } else if ((dtype) == INVAR_CUDA_BFLOAT16) {    \
    body<BF16>(__VA_ARGS__);                      \
  } else {                                        \
    body<F16>(__VA_ARGS__);                       \
  }

struct AddStep {
  INVAR_DEVICE float operator()(float l, float x) const { return add(l, x); }
};
struct SquareStep {
  INVAR_DEVICE float operator()(float l, float x) const { return fused(x, x, l); }
};
struct ExpStep {
  float top;
  INVAR_DEVICE float operator()(float l, float x) const {
    return add(l, exp_nonpositive(sub(x, top)));
  }
};

}  // namespace invar
