// How much scratch an operator takes. One place, because dispatch.cpp answers the
// caller's question with it and the levels cut up the memory with it.
#pragma once

#include "invar_cpu.h"

namespace {

// A matrix product runs over blocks of rows, of k and of panels. None of the sizes
// touches a result: they only move the places where a chain pauses in memory.
struct mm_blocks {
  int64_t rows;    // rows of a taken together
  int64_t k;       // steps of k taken together
  int64_t panels;  // panels taken together, so that a is converted once for them
};

constexpr int64_t kWeightBlock = 128;  // steps of k in the block of b kept in L1: 32 KiB
constexpr int64_t kMostRows = 512;     // b is read again for each block of rows
constexpr int64_t kFloatsOfA = 65536;  // of a in use at a time: a quarter of an L2 cache
constexpr int64_t kFloatsOfOut = 98304;
constexpr int64_t kMostPanels = 16;
static_assert(kFloatsOfA / kMostRows >= kWeightBlock, "a block of k would be empty");

inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
inline int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }
inline int64_t round_up(int64_t x, int64_t to) { return (x + to - 1) / to * to; }

inline bool a_is_direct(const invar_cpu_mm_args &g) {
  return g.a.dtype == INVAR_CPU_FLOAT32 && (g.a.col == 1 || g.k <= 1);
}

inline mm_blocks blocks_of(const invar_cpu_mm_args &g) {
  int64_t blocks = most(1, (g.m + kMostRows - 1) / kMostRows);
  int64_t rows = most(1, (g.m + blocks - 1) / blocks);
  int64_t k = kFloatsOfA / rows / kWeightBlock * kWeightBlock;
  int64_t panels = least(kMostPanels, most(1, kFloatsOfOut / (rows * INVAR_CPU_PANEL)));
  return {rows, k, a_is_direct(g) ? 1 : panels};
}

// Rows of a converted block of a lie this far apart: not a power of two, or six
// rows would fight for one set of the L1 cache.
inline int64_t a_stride(const mm_blocks &s, int64_t k) {
  return round_up(least(s.k, most(k, 1)), 16) + 16;
}

// Floats of scratch for mm: accumulators, a block of b, a converted block of a.
inline int64_t mm_accumulators(const mm_blocks &s) { return s.rows * s.panels * INVAR_CPU_PANEL; }
inline int64_t mm_scratch_floats(const invar_cpu_mm_args &g) {
  mm_blocks s = blocks_of(g);
  int64_t a = a_is_direct(g) ? 0 : s.rows * a_stride(s, g.k);
  return mm_accumulators(s) + kWeightBlock * INVAR_CPU_PANEL + a;
}

// Row operators work on float32 rows without gaps. Rows that are not so are brought
// into scratch, several at a time when a column is not the next element.
constexpr int64_t kRowBlock = 16;
constexpr int64_t kRowBlockFloats = 65536;

inline bool is_direct(int64_t col, int32_t dtype, int64_t cols) {
  return dtype == INVAR_CPU_FLOAT32 && (col == 1 || cols <= 1);
}

inline int64_t row_block(bool gaps, int64_t cols) {
  if (!gaps) return 1;
  return most(1, least(kRowBlock, kRowBlockFloats / most(cols, 1)));
}

inline int64_t row_stride(int64_t cols) { return round_up(cols, 16); }

constexpr int64_t kSumPiece = 4096;  // columns; whole rounds of the 64 lanes

inline int64_t row_scratch_floats(const invar_cpu_row_args &g) {
  if (is_direct(g.x.col, g.x.dtype, g.cols) && is_direct(g.out.col, g.out.dtype, g.cols)) return 0;
  bool gaps = g.x.col != 1 || g.out.col != 1;
  int64_t sum = (gaps ? kRowBlock : 1) * row_stride(least(g.cols, kSumPiece));
  return most(sum, row_block(gaps, g.cols) * row_stride(g.cols));
}

}  // namespace
