// The operators of the C ABI: check, set the floating-point state, call the level.
#define INVAR_CPU_BUILD
#include "check.h"
#include "fpstate.h"
#include "isa.h"

namespace {

// Room to begin scratch at a multiple of 64 bytes.
constexpr int64_t kAlign = 64;

inline int64_t with_alignment(int64_t floats) { return floats ? floats * 4 + kAlign : 0; }

inline float *aligned(void *scratch) {
  return reinterpret_cast<float *>((uintptr_t(scratch) + kAlign - 1) / kAlign * kAlign);
}

inline int32_t first_of(int32_t a, int32_t b) { return a ? a : b; }

enum row_operator { kSum, kMean, kSoftmax, kLogSoftmax };

int32_t row_op(row_operator op, const invar_cpu_row_args *g, int64_t begin, int64_t end,
               void *scratch, int64_t scratch_size) {
  if (!g) return INVAR_CPU_BAD_POINTER;
  int32_t s = check_row_shape(*g);
  s = first_of(s, check_range(begin, end, g->rows));
  s = first_of(s, check_row_pointers(*g, op == kSum || op == kMean));
  if (s) return s;
  s = check_scratch(invar_cpu_row_scratch(g), scratch, scratch_size);
  const invar_level *l = invar_level_in_use();
  if (s || !l) return first_of(s, INVAR_CPU_BAD_ISA);
  fp_state state;
  if (op == kSum || op == kMean) {
    l->sum(g, op == kMean, begin, end, aligned(scratch));
  } else if (g->cols) {
    l->softmax(g, op == kLogSoftmax, begin, end, aligned(scratch));
  }
  return INVAR_CPU_OK;
}

int32_t norm_op(bool residual, const invar_cpu_norm_args *g, int64_t begin, int64_t end,
                void *scratch, int64_t scratch_size) {
  if (!g) return INVAR_CPU_BAD_POINTER;
  int32_t s = check_norm_shape(*g, residual);
  s = first_of(s, check_range(begin, end, g->rows));
  s = first_of(s, check_norm_pointers(*g, residual));
  if (s) return s;
  s = check_scratch(invar_cpu_norm_scratch(g), scratch, scratch_size);
  const invar_level *l = invar_level_in_use();
  if (s || !l) return first_of(s, INVAR_CPU_BAD_ISA);
  if (!g->cols) return INVAR_CPU_OK;
  invar_cpu_norm_args args = *g;
  if (!residual) args.residual.data = nullptr;
  fp_state state;
  l->norm(&args, begin, end, aligned(scratch));
  return INVAR_CPU_OK;
}

}  // namespace

extern "C" {

int64_t invar_cpu_mm_panels(int64_t n) {
  return bad_size(n) ? -1 : (n + INVAR_CPU_PANEL - 1) / INVAR_CPU_PANEL;
}

int64_t invar_cpu_mm_scratch(const invar_cpu_mm_args *g) {
  if (!g || check_mm_shape(*g)) return -1;
  return with_alignment(mm_scratch_floats(*g));
}

int32_t invar_cpu_mm(const invar_cpu_mm_args *g, int64_t begin, int64_t end, void *scratch,
                     int64_t scratch_size) {
  if (!g) return INVAR_CPU_BAD_POINTER;
  int32_t s = check_mm_shape(*g);
  if (s) return s;
  s = check_range(begin, end, invar_cpu_mm_panels(g->n));
  s = first_of(s, check_mm_pointers(*g));
  s = first_of(s, check_scratch(invar_cpu_mm_scratch(g), scratch, scratch_size));
  const invar_level *l = invar_level_in_use();
  if (s || !l) return first_of(s, INVAR_CPU_BAD_ISA);
  fp_state state;
  l->mm(g, begin, end, aligned(scratch));
  return INVAR_CPU_OK;
}

int64_t invar_cpu_packed_elements(int64_t n, int64_t k) {
  int64_t e;
  if (bad_size(n) || bad_size(k)) return -1;
  bool over = __builtin_mul_overflow(round_up(n, INVAR_CPU_PANEL), k, &e);
  return over || bad_size(e) ? -1 : e;
}

int32_t invar_cpu_pack(const invar_cpu_in *b, int64_t n, int64_t k, void *packed, int64_t begin,
                       int64_t end) {
  if (!b) return INVAR_CPU_BAD_POINTER;
  if (invar_cpu_packed_elements(n, k) < 0) return INVAR_CPU_BAD_SIZE;
  if (bad_dtype(b->dtype)) return INVAR_CPU_BAD_DTYPE;
  int32_t s = check_range(begin, end, invar_cpu_mm_panels(n));
  if (!s && n && k && (!b->data || !packed)) s = INVAR_CPU_BAD_POINTER;
  const invar_level *l = invar_level_in_use();
  if (s || !l) return first_of(s, INVAR_CPU_BAD_ISA);
  fp_state state;
  l->pack(b, n, k, packed, begin, end);
  return INVAR_CPU_OK;
}

int64_t invar_cpu_row_scratch(const invar_cpu_row_args *g) {
  if (!g || check_row_shape(*g)) return -1;
  return with_alignment(row_scratch_floats(*g));
}

int32_t invar_cpu_sum(const invar_cpu_row_args *g, int64_t begin, int64_t end, void *scratch,
                      int64_t scratch_size) {
  return row_op(kSum, g, begin, end, scratch, scratch_size);
}

int32_t invar_cpu_mean(const invar_cpu_row_args *g, int64_t begin, int64_t end, void *scratch,
                       int64_t scratch_size) {
  return row_op(kMean, g, begin, end, scratch, scratch_size);
}

int32_t invar_cpu_softmax(const invar_cpu_row_args *g, int64_t begin, int64_t end, void *scratch,
                          int64_t scratch_size) {
  return row_op(kSoftmax, g, begin, end, scratch, scratch_size);
}

int32_t invar_cpu_log_softmax(const invar_cpu_row_args *g, int64_t begin, int64_t end,
                              void *scratch, int64_t scratch_size) {
  return row_op(kLogSoftmax, g, begin, end, scratch, scratch_size);
}

int64_t invar_cpu_norm_scratch(const invar_cpu_norm_args *g) {
  if (!g || check_norm_shape(*g, false)) return -1;
  return with_alignment((row_block(g->x.col != 1 || g->out.col != 1, g->cols) + 2) *
                        row_stride(g->cols));
}

int32_t invar_cpu_rms_norm(const invar_cpu_norm_args *g, int64_t begin, int64_t end, void *scratch,
                           int64_t scratch_size) {
  return norm_op(false, g, begin, end, scratch, scratch_size);
}

int32_t invar_cpu_add_rms_norm(const invar_cpu_norm_args *g, int64_t begin, int64_t end,
                               void *scratch, int64_t scratch_size) {
  return norm_op(true, g, begin, end, scratch, scratch_size);
}

}  // extern "C"
