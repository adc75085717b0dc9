// mm over panels: out = alpha * (a . b) + beta * c.
#pragma once

#include "block.h"
#include "tile.h"

namespace {

struct mm_run {
  const invar_cpu_mm_args &g;
  mm_blocks s;
  float *accumulators;  // [panels][rows][64]
  float *block;         // [kWeightBlock][64]
  float *a_wide;        // [rows][a_stride]
};

inline tile_function tile_for(int32_t dtype, int64_t rows) {
  if (dtype == INVAR_CPU_FLOAT32) return tile_of<INVAR_CPU_FLOAT32>(rows);
  if (dtype == INVAR_CPU_BFLOAT16) return tile_of<INVAR_CPU_BFLOAT16>(rows);
  return tile_of<INVAR_CPU_FLOAT16>(rows);
}

// All rows over one stretch of one panel. Tiles get about the same number of rows:
// 8 rows go as 4 and 4, not as 6 and 2.
inline void run_tiles(const float_any *a, int64_t lda, int64_t rows, const char *b, int64_t ldb,
                      int32_t dtype, int64_t k, float *c, bool first) {
  int64_t tiles = (rows + kTileRows - 1) / kTileRows;
  for (int64_t t = 0, i = 0; t < tiles; t++) {
    int64_t n = (rows - i + tiles - t - 1) / (tiles - t);
    tile_for(dtype, n)(a + i * lda, lda, b, ldb, k, c + i * INVAR_CPU_PANEL, first);
    i += n;
  }
}

// One panel over the steps [step, step + k).
inline void run_panel(const mm_run &r, int64_t panel, const float_any *a, int64_t lda,
                      int64_t rows, int64_t step, int64_t k, float *c) {
  panel_source src = source_of(r.g.b, r.g.b_packed, r.g.n, r.g.k, panel);
  // A tile can widen b in registers, where it lies. That beats a pass through a block
  // in L1 as long as not too many tiles do it again; a bfloat16 takes one shift. A tile
  // that is narrower than the panel comes back for the other columns, and only packed
  // steps are dense enough to be found in L1 then.
  int64_t tiles = (rows + kTileRows - 1) / kTileRows;
  bool once = tiles <= 1 && src.in_place() && tile_vectors(int(rows)) * VL == INVAR_CPU_PANEL;
  bool few = r.g.b.dtype == INVAR_CPU_BFLOAT16 ? tiles <= 8 : tiles <= 2;
  bool as_is = once || (src.packed && (few || r.g.b.dtype == INVAR_CPU_FLOAT32));
  int64_t block = once ? k : kWeightBlock;  // b is read again for each tile: from L1
  for (int64_t i = 0; i < k; i += block) {
    int64_t n = least(block, k - i);
    const char *b = reinterpret_cast<const char *>(r.block);
    int64_t ldb = INVAR_CPU_PANEL * sizeof(float);
    if (as_is) {
      b = src.at(step + i);
      ldb = src.step_bytes();
    } else {
      fill_block(src, step + i, n, r.block);
    }
    run_tiles(a + i, lda, rows, b, ldb, as_is ? r.g.b.dtype : int32_t(INVAR_CPU_FLOAT32), n, c,
              step + i == 0);
  }
}

// The accumulators of rows [row, row + rows) and panels [begin, end).
inline void run_product(const mm_run &r, int64_t begin, int64_t end, int64_t row, int64_t rows) {
  int64_t per_panel = rows * INVAR_CPU_PANEL;
  if (r.g.k == 0) __builtin_memset(r.accumulators, 0, size_t((end - begin) * per_panel) * 4);
  for (int64_t step = 0; step < r.g.k; step += r.s.k) {
    int64_t k = least(r.s.k, r.g.k - step), lda = r.g.a.row;
    auto *a = reinterpret_cast<const float_any *>(element(r.g.a, row, step));
    if (!a_is_direct(r.g)) {
      lda = a_stride(r.s, r.g.k);
      widen_matrix(r.g.a, row, rows, step, k, r.a_wide, lda);
      a = r.a_wide;
    }
    for (int64_t p = begin; p < end; p++) {
      run_panel(r, p, a, lda, rows, step, k, r.accumulators + (p - begin) * per_panel);
    }
  }
}

// out = alpha * acc + beta * c for one row of one panel: two products, one sum, one
// rounding to the dtype of out.
inline void finish_row(const invar_cpu_mm_args &g, int64_t row, int64_t panel, float *acc) {
  int64_t col = panel * INVAR_CPU_PANEL, n = least(g.n - col, INVAR_CPU_PANEL);
  if (g.alpha != 1.0f) {
    for (int j = 0; j < INVAR_CPU_PANEL; j += VL) {
      store(acc + j, mul(splat(g.alpha), load(acc + j)));
    }
  }
  if (g.c.data && g.beta != 0.0f) {
    float c[INVAR_CPU_PANEL] = {0};
    widen(element(g.c, row, col), g.c.dtype, g.c.col, n, c);
    for (int j = 0; j < INVAR_CPU_PANEL; j += VL) {
      store(acc + j, add(load(acc + j), mul(splat(g.beta), load(c + j))));
    }
  }
  narrow(acc, n, element(g.out, row, col), g.out.dtype, g.out.col);
}

void mm(const invar_cpu_mm_args *args, int64_t begin, int64_t end, float *scratch) {
  mm_run r = {*args, blocks_of(*args), scratch, nullptr, nullptr};
  r.block = scratch + mm_accumulators(r.s);
  r.a_wide = r.block + kWeightBlock * INVAR_CPU_PANEL;
  for (int64_t p = begin; p < end; p += r.s.panels) {
    int64_t last = least(p + r.s.panels, end);
    for (int64_t row = 0; row < args->m; row += r.s.rows) {
      int64_t rows = least(r.s.rows, args->m - row);
      run_product(r, p, last, row, rows);
      float *acc = r.accumulators;
      for (int64_t q = p; q < last; q++) {
        for (int64_t i = 0; i < rows; i++, acc += INVAR_CPU_PANEL) {
          finish_row(*args, row + i, q, acc);
        }
      }
    }
  }
}

}  // namespace
