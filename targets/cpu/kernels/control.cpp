// The negative control: a matrix product whose bits follow the number of rows, as
// those of many fast ones do. It exists so that a proof of batch invariance can be
// shown to fail. Nothing routes to it.
#define INVAR_CPU_BUILD
#include "check.h"
#include "fpstate.h"
#include "half.h"

namespace {

float read(const invar_cpu_in &x, int64_t row, int64_t col) {
  int64_t i = row * x.row + col * x.col;
  if (x.dtype == INVAR_CPU_FLOAT32) return static_cast<const float_any *>(x.data)[i];
  uint16_t h = static_cast<const half_any *>(x.data)[i];
  return x.dtype == INVAR_CPU_BFLOAT16 ? from_bf16(h) : from_f16_bits(h);
}

void write(const invar_cpu_out &x, int64_t row, int64_t col, float f) {
  int64_t i = row * x.row + col * x.col;
  if (x.dtype == INVAR_CPU_FLOAT32) {
    static_cast<float_any *>(x.data)[i] = canonical1(f);
  } else {
    static_cast<half_any *>(x.data)[i] = x.dtype == INVAR_CPU_BFLOAT16 ? to_bf16(f) : to_f16_bits(f);
  }
}

// One element: `slices` sums over k, added up in order.
float split_dot(const invar_cpu_mm_args &g, int64_t i, int64_t j, int64_t slices) {
  float all = 0.0f;
  for (int64_t s = 0; s < slices; s++) {
    float part = 0.0f;
    int64_t to = g.k / slices * (s + 1) + least(s + 1, g.k % slices);
    int64_t from = g.k / slices * s + least(s, g.k % slices);
    for (int64_t t = from; t < to; t++) part += read(g.a, i, t) * read(g.b, t, j);
    all += part;
  }
  return all;
}

}  // namespace

__attribute__((visibility("hidden"), noinline)) void invar_control_product(
    const invar_cpu_mm_args &g) {
  for (int64_t i = 0; i < g.m; i++) {
    for (int64_t j = 0; j < g.n; j++) {
      float v = g.alpha * split_dot(g, i, j, 1 + g.m % 13);
      if (g.c.data && g.beta != 0.0f) v = v + g.beta * read(g.c, i, j);
      write(g.out, i, j, v);
    }
  }
}

extern "C" int32_t invar_cpu_control_mm(const invar_cpu_mm_args *g) {
  if (!g) return INVAR_CPU_BAD_POINTER;
  int32_t s = check_mm_shape(*g);
  if (!s) s = check_mm_pointers(*g);
  if (!s && g->b_packed) s = INVAR_CPU_BAD_POINTER;
  if (s) return s;
  fp_state state;
  invar_control_product(*g);
  return INVAR_CPU_OK;
}
