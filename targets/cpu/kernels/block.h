// Blocks of b: any layout and dtype to float32 steps of 64 columns.
#pragma once

#include "convert.h"
#include "partial.h"

namespace {

// Where one panel of b lies.
struct panel_source {
  invar_cpu_in b;
  bool packed;
  int64_t k;        // of the whole product
  int64_t panel;
  int64_t columns;  // of the panel that exist

  const char *at(int64_t step) const {
    if (!packed) return element(b, step, panel * INVAR_CPU_PANEL);
    int64_t e = (panel * k + step) * INVAR_CPU_PANEL;
    return static_cast<const char *>(b.data) + e * element_size(b.dtype);
  }
  // A tile can read 64 columns of each step where they are.
  bool in_place() const {
    return packed || (columns == INVAR_CPU_PANEL && b.col == 1);
  }
  int64_t step_bytes() const {
    return (packed ? INVAR_CPU_PANEL : b.row) * element_size(b.dtype);
  }
};

inline panel_source source_of(const invar_cpu_in &b, bool packed, int64_t n, int64_t k,
                              int64_t panel) {
  return {b, packed, k, panel, least(n - panel * INVAR_CPU_PANEL, INVAR_CPU_PANEL)};
}

// steps x columns of b with the steps next to each other (a weight as a linear layer
// keeps it): VL x VL at a time.
inline void fill_transposed(const panel_source &s, int64_t step, int64_t steps, float *to) {
  int64_t j = 0, size = element_size(s.b.dtype);
  for (; j + VL <= s.columns; j += VL) {
    const char *p = s.at(step) + j * s.b.col * size;
    int64_t i = 0;
    for (; i + VL <= steps; i += VL) {
      const char *q = p + i * size;
      float *d = to + i * INVAR_CPU_PANEL + j;
      if (s.b.dtype == INVAR_CPU_FLOAT32) {
        transpose(reinterpret_cast<const float_any *>(q), s.b.col, d, INVAR_CPU_PANEL);
        continue;
      }
      float wide[VL * VL];
      for (int r = 0; r < VL; r++) widen(q + r * s.b.col * size, s.b.dtype, 1, VL, wide + r * VL);
      transpose(wide, VL, d, INVAR_CPU_PANEL);
    }
    for (; i < steps; i++) {
      widen(p + i * size, s.b.dtype, s.b.col, VL, to + i * INVAR_CPU_PANEL + j);
    }
  }
  for (; j < s.columns; j++) {
    const char *p = s.at(step) + j * s.b.col * size;
    for (int64_t i = 0; i < steps; i++) to[i * INVAR_CPU_PANEL + j] = get(p + i * size, s.b.dtype);
  }
}

// to[steps][64] = the steps [step, step + steps) of the panel, zeros past its columns.
inline void fill_block(const panel_source &s, int64_t step, int64_t steps, float *to) {
  if (s.packed) {
    widen(s.at(step), s.b.dtype, 1, steps * INVAR_CPU_PANEL, to);
    return;
  }
  if (s.columns < INVAR_CPU_PANEL && s.b.col == 1 && s.b.dtype == INVAR_CPU_FLOAT32) {
    for (int64_t i = 0; i < steps; i++, to += INVAR_CPU_PANEL) {
      auto *p = reinterpret_cast<const float_any *>(s.at(step + i));
      for (int64_t j = 0; j < INVAR_CPU_PANEL; j += VL) {
        int64_t left = s.columns - j;
        store(to + j, left >= VL ? load(p + j) : left > 0 ? load_some(p + j, left, 0.0f) : splat(0.0f));
      }
    }
    return;
  }
  if (s.columns < INVAR_CPU_PANEL) {
    __builtin_memset(to, 0, size_t(steps) * INVAR_CPU_PANEL * sizeof(float));
  }
  if (s.b.row == 1 && s.b.col != 1) {
    fill_transposed(s, step, steps, to);
    return;
  }
  for (int64_t i = 0; i < steps; i++) {
    widen(s.at(step + i), s.b.dtype, s.b.col, s.columns, to + i * INVAR_CPU_PANEL);
  }
}

// Widening and narrowing back keeps every value (a NaN becomes the canonical one).
void pack(const invar_cpu_in *b, int64_t n, int64_t k, void *packed, int64_t begin, int64_t end) {
  constexpr int64_t kSteps = 32;
  float block[kSteps * INVAR_CPU_PANEL];
  for (int64_t p = begin; p < end; p++) {
    panel_source s = source_of(*b, false, n, k, p);
    for (int64_t i = 0; i < k; i += kSteps) {
      int64_t steps = least(kSteps, k - i);
      fill_block(s, i, steps, block);
      char *to = static_cast<char *>(packed);
      to += (p * k + i) * INVAR_CPU_PANEL * element_size(b->dtype);
      narrow(block, steps * INVAR_CPU_PANEL, to, b->dtype, 1);
    }
  }
}

}  // namespace
