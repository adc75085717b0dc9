// Row operators: checks, the choice of a variant, launches.
#define INVAR_CUDA_BUILD
#include "check.h"
#include "kernels.h"

#include <initializer_list>

namespace invar {
namespace {

enum RowVariant { kBlock, kWarp, kSplit, row_variants };
const char *const kRowVariants[row_variants] = {"block", "warp", "split"};

// Rows up to here are cheaper with a warp each; any n up to 2048 would do.
constexpr int64_t kWarpCols = 1024;
// Rows fewer than this leave most of a device idle with one block each.
constexpr int64_t kSplitRows = 128;

constexpr int kSlots = 8 * sizeof(float);

int64_t segments_of(int64_t cols) { return cols > kSegment ? divide_up(cols, kSegment) : 1; }

// The variant for these sizes; row_variants when the forced one does not fit. The
// choice may follow anything: it changes no bit.
RowVariant variant_of(int32_t forced, int64_t rows, int64_t cols) {
  if (forced) {
    const bool fits = forced > 0 && forced <= row_variants && (forced != 1 + kWarp || cols <= kLanes);
    return fits ? RowVariant(forced - 1) : row_variants;
  }
  if (cols <= kWarpCols) return kWarp;
  return segments_of(cols) > 1 && rows < kSplitRows ? kSplit : kBlock;
}

// Whether an operand lies in whole runs at multiples of 16 bytes, with one dtype for all:
// then the kernels for that do the same faster.
bool in_runs(const void *data, int64_t row, int64_t col, int32_t dtype, int32_t of, int64_t rows,
             int64_t cols) {
  return col == 1 && dtype == of && cols % kRun == 0 && (row % kRun == 0 || rows == 1) &&
         reinterpret_cast<uintptr_t>(data) % 16 == 0;
}

template <class Operand>
bool in_runs(const Operand &x, int32_t of, int64_t rows, int64_t cols) {
  return in_runs(x.data, x.row, x.col, x.dtype, of, rows, cols);
}

int32_t check_shape(const invar_cuda_row_args &g) {
  if (bad_size(g.rows) || bad_size(g.cols) || product(g.rows, segments_of(g.cols)) < 0) {
    return INVAR_CUDA_BAD_SIZE;
  }
  if (bad_dtype(g.x.dtype) || bad_dtype(g.out.dtype)) return INVAR_CUDA_BAD_DTYPE;
  return variant_of(g.variant, g.rows, g.cols) == row_variants ? INVAR_CUDA_BAD_VARIANT
                                                               : INVAR_CUDA_OK;
}

// Bytes of one array of [rows][segments]: a multiple of 16.
int64_t array_bytes(const invar_cuda_row_args &g) {
  return divide_up(g.rows * segments_of(g.cols), 4) * 16;
}

int64_t workspace_of(const invar_cuda_row_args &g) {
  return variant_of(g.variant, g.rows, g.cols) == kSplit ? 2 * array_bytes(g) : 0;
}

RowParams params_of(const invar_cuda_row_args &g, void *workspace) {
  RowParams p{};
  p.x = g.x;
  p.out = g.out;
  p.rows = g.rows;
  p.cols = g.cols;
  p.segments = segments_of(g.cols);
  p.maxima = static_cast<float *>(workspace);
  p.sums = p.maxima ? p.maxima + array_bytes(g) / 4 : nullptr;
  return p;
}

int32_t check(const invar_cuda_row_args *g, bool one_column, const void *workspace, int64_t size) {
  if (!g) return INVAR_CUDA_BAD_POINTER;
  if (const int32_t s = check_shape(*g)) return s;
  const bool reads = g->rows && g->cols, writes = g->rows && (g->cols || one_column);
  if ((reads && bad_pointer(g->x.data, g->x.dtype)) ||
      (writes && bad_pointer(g->out.data, g->out.dtype))) {
    return INVAR_CUDA_BAD_POINTER;
  }
  return writes ? check_workspace(workspace_of(*g), workspace, size) : INVAR_CUDA_OK;
}

int32_t sum(const invar_cuda_row_args *g, bool mean, void *workspace, int64_t size, void *stream) {
  if (const int32_t s = check(g, true, workspace, size)) return s;
  RowParams p = params_of(*g, workspace);
  p.mean = mean;
  const bool wide = in_runs(p.x, p.x.dtype, p.rows, p.cols);
  switch (variant_of(g->variant, g->rows, g->cols)) {
    case kWarp:
      return launch_all(wide ? k_invar_sum_warp_wide : k_invar_sum_warp,
                        divide_up(p.rows, kWarpRows), kWarpRows, 0, p, stream);
    case kSplit: {
      const int32_t s =
          launch_all(k_invar_sum_part, p.rows * p.segments, 1, kSlots, p, stream);
      return s ? s
               : launch_all(k_invar_sum_end, divide_up(p.rows, kRowThreads), kRowThreads, 0, p,
                            stream);
    }
    default:
      return launch_all(wide ? k_invar_sum_wide : k_invar_sum, p.rows, 1, kSlots, p, stream);
  }
}

int32_t softmax(const invar_cuda_row_args *g, bool log, void *workspace, int64_t size,
                void *stream) {
  if (const int32_t s = check(g, false, workspace, size)) return s;
  if (!g->cols) return INVAR_CUDA_OK;
  RowParams p = params_of(*g, workspace);
  p.log = log;
  const bool wide = in_runs(p.x, p.x.dtype, p.rows, p.cols) &&
                    in_runs(p.out, p.x.dtype, p.rows, p.cols);
  switch (variant_of(g->variant, g->rows, g->cols)) {
    case kWarp:
      return launch_all(wide ? k_invar_softmax_warp_wide : k_invar_softmax_warp,
                        divide_up(p.rows, kWarpRows), kWarpRows, 0, p, stream);
    case kSplit: {
      int32_t s = INVAR_CUDA_OK;
      for (const Kernel k : {k_invar_top_part, k_invar_exp_part, k_invar_softmax_part}) {
        if (!s) s = launch_all(k, p.rows * p.segments, 1, kSlots, p, stream);
      }
      return s;
    }
    default:
      return launch_all(wide ? k_invar_softmax_wide : k_invar_softmax, p.rows, 1, kSlots, p,
                        stream);
  }
}

int32_t check_norm(const invar_cuda_norm_args *g, bool add) {
  if (!g) return INVAR_CUDA_BAD_POINTER;
  if (bad_size(g->rows) || bad_size(g->cols)) return INVAR_CUDA_BAD_SIZE;
  if (bad_dtype(g->x.dtype) || bad_dtype(g->out.dtype) ||
      (g->weight.data && bad_dtype(g->weight.dtype)) ||
      (add && (bad_dtype(g->residual.dtype) || bad_dtype(g->residual_out.dtype)))) {
    return INVAR_CUDA_BAD_DTYPE;
  }
  const RowVariant v = variant_of(g->variant, g->rows, g->cols);
  if (g->variant && (v == row_variants || v == kSplit)) return INVAR_CUDA_BAD_VARIANT;
  if (!g->rows || !g->cols) return INVAR_CUDA_OK;
  const bool bad =
      bad_pointer(g->x.data, g->x.dtype) || bad_pointer(g->out.data, g->out.dtype) ||
      (g->weight.data && bad_pointer(g->weight.data, g->weight.dtype)) ||
      (add && (bad_pointer(g->residual.data, g->residual.dtype) ||
               bad_pointer(g->residual_out.data, g->residual_out.dtype)));
  return bad ? INVAR_CUDA_BAD_POINTER : INVAR_CUDA_OK;
}

bool wide_norm(const NormParams &p) {
  const int32_t of = p.x.dtype;
  bool wide = in_runs(p.x, of, p.rows, p.cols) && in_runs(p.out, of, p.rows, p.cols);
  wide = wide && (!p.weight.data || in_runs(p.weight, of, 1, p.cols));
  return wide && (!p.residual.data || (in_runs(p.residual, of, p.rows, p.cols) &&
                                       in_runs(p.residual_out, of, p.rows, p.cols)));
}

int32_t norm(const invar_cuda_norm_args *g, bool add, void *stream) {
  if (const int32_t s = check_norm(g, add)) return s;
  if (!g->cols) return INVAR_CUDA_OK;
  NormParams p{};
  p.x = g->x;
  p.residual = g->residual;
  if (!add) p.residual.data = nullptr;
  p.weight = g->weight;
  p.out = g->out;
  p.residual_out = g->residual_out;
  p.rows = g->rows;
  p.cols = g->cols;
  p.eps = g->eps;
  const bool wide = wide_norm(p);
  if (variant_of(g->variant, g->rows, g->cols) == kWarp) {
    return launch_all(wide ? k_invar_norm_warp_wide : k_invar_norm_warp,
                      divide_up(p.rows, kWarpRows), kWarpRows, 0, p, stream);
  }
  return launch_all(wide ? k_invar_norm_wide : k_invar_norm, p.rows, 1, kSlots, p, stream);
}

}  // namespace
}  // namespace invar

extern "C" {

const char *invar_cuda_row_variant_name(int32_t index) {
  return index < 0 || index >= invar::row_variants ? nullptr : invar::kRowVariants[index];
}

int64_t invar_cuda_row_workspace(const invar_cuda_row_args *g) {
  return !g || invar::check_shape(*g) ? -1 : invar::workspace_of(*g);
}

int32_t invar_cuda_sum(const invar_cuda_row_args *g, void *workspace, int64_t size, void *stream) {
  return invar::sum(g, false, workspace, size, stream);
}

int32_t invar_cuda_mean(const invar_cuda_row_args *g, void *workspace, int64_t size,
                        void *stream) {
  return invar::sum(g, true, workspace, size, stream);
}

int32_t invar_cuda_softmax(const invar_cuda_row_args *g, void *workspace, int64_t size,
                           void *stream) {
  return invar::softmax(g, false, workspace, size, stream);
}

int32_t invar_cuda_log_softmax(const invar_cuda_row_args *g, void *workspace, int64_t size,
                               void *stream) {
  return invar::softmax(g, true, workspace, size, stream);
}

int32_t invar_cuda_rms_norm(const invar_cuda_norm_args *g, void *stream) {
  return invar::norm(g, false, stream);
}

int32_t invar_cuda_add_rms_norm(const invar_cuda_norm_args *g, void *stream) {
  return invar::norm(g, true, stream);
}

}  // extern "C"
