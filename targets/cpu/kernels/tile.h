// The register tile of mm: some rows of a by one panel of b, over a run of k.
#pragma once

#include "scratch.h"

namespace {

// One step of k over N vectors of b of the given dtype, in whatever column order
// the accumulators use.
template <int DTYPE, int N> inline void load_step(const char *p, vf (&b)[N]) {
  for (int j = 0; j < N; j++) {
    if (DTYPE == INVAR_CPU_FLOAT32) b[j] = load(p + j * VL * 4);
    if (DTYPE == INVAR_CPU_FLOAT16) b[j] = load_f16(p + j * VL * 2);
#if !INVAR_BF16_PAIRS
    if (DTYPE == INVAR_CPU_BFLOAT16) b[j] = load_bf16(p + j * VL * 2);
#endif
  }
#if INVAR_BF16_PAIRS
  for (int j = 0; DTYPE == INVAR_CPU_BFLOAT16 && j < N; j += 2) {
    load_bf16_pair(p + j * VL * 2, b[j], b[j + 1]);
  }
#endif
}

template <int DTYPE, int N> inline void to_column_order(vf (&v)[N]) {
  (void)v;
#if INVAR_BF16_PAIRS
  for (int j = 0; DTYPE == INVAR_CPU_BFLOAT16 && j < N; j += 2) join_pair(v[j], v[j + 1]);
#endif
}

template <int DTYPE, int N> inline void from_column_order(vf (&v)[N]) {
  (void)v;
#if INVAR_BF16_PAIRS
  for (int j = 0; DTYPE == INVAR_CPU_BFLOAT16 && j < N; j += 2) split_pair(v[j], v[j + 1]);
#endif
}

// c[i][0..64) takes the chain over k steps further; it starts from +0 when first.
// a: row i at a + i*lda. b: step k at b + k*ldb bytes. c: rows of 64.
template <int ROWS, int DTYPE>
void tile(const float_any *a, int64_t lda, const char *b, int64_t ldb, int64_t k, float *c,
          bool first) {
  constexpr int N = tile_vectors(ROWS);
  constexpr int kSize = DTYPE == INVAR_CPU_FLOAT32 ? 4 : 2;
  for (int s = 0; s < INVAR_CPU_PANEL; s += N * VL, b += N * VL * kSize, c += N * VL) {
    vf acc[ROWS][N];
    for (int i = 0; i < ROWS; i++) {
      for (int j = 0; j < N; j++) {
        acc[i][j] = first ? splat(0.0f) : load(c + i * INVAR_CPU_PANEL + j * VL);
      }
      from_column_order<DTYPE>(acc[i]);
    }
    const char *p = b;
    for (int64_t t = 0; t < k; t++, p += ldb) {
      // The first pass over some of the columns reads one line of each step and leaves
      // the others to be missed by the passes that follow: ask for all of them.
      if (N * VL < INVAR_CPU_PANEL && s == 0) {
        const char *ahead = p + 12 * ldb;
        for (int j = N * VL * kSize; j < INVAR_CPU_PANEL * kSize; j += 64) {
          __builtin_prefetch(ahead + j);
        }
      }
      vf w[N];
      load_step<DTYPE>(p, w);
#pragma GCC unroll 8
      for (int i = 0; i < ROWS; i++) {
        vf x = splat(a[i * lda + t]);
#pragma GCC unroll 16
        for (int j = 0; j < N; j++) acc[i][j] = fma(x, w[j], acc[i][j]);
      }
    }
    for (int i = 0; i < ROWS; i++) {
      to_column_order<DTYPE>(acc[i]);
      for (int j = 0; j < N; j++) store(c + i * INVAR_CPU_PANEL + j * VL, acc[i][j]);
    }
  }
}

typedef void (*tile_function)(const float_any *, int64_t, const char *, int64_t, int64_t, float *,
                              bool);

template <int DTYPE> inline tile_function tile_of(int64_t rows) {
  static_assert(kTileRows <= 6, "a row count without a tile");
  switch (rows < kTileRows ? rows : kTileRows) {
    case 1: return tile<1, DTYPE>;
    case 2: return tile<2, DTYPE>;
#if INVAR_TILE_ROWS > 2
    case 3: return tile<3, DTYPE>;
    case 4: return tile<4, DTYPE>;
#endif
#if INVAR_TILE_ROWS > 4
    case 5: return tile<5, DTYPE>;
    case 6: return tile<6, DTYPE>;
#endif
  }
  return nullptr;
}

}  // namespace
