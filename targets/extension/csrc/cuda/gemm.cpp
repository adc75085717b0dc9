#include "../gemm.h"

#include "../device.h"
#include "workspace.h"

#include <algorithm>

namespace invar {
namespace {

using Batch = std::vector<BatchDim>;

void *at(const void *base, int64_t elements, int32_t dtype) {
  return base == nullptr
             ? nullptr
             : const_cast<char *>(static_cast<const char *>(base)) + elements * element_size(dtype);
}

// Turns batch dimensions into rows where b is the same for all of them and the rows of
// the others follow on: x[..., k] @ w[k, n] is one product.
void fold(Gemm &g, Batch &batch) {
  std::erase_if(batch, [](const BatchDim &d) { return d.size == 1; });
  while (!batch.empty() && g.m > 0) {
    const BatchDim d = batch.back();
    if (d.b != 0) {
      return;
    }
    if (g.m == 1) {
      g.a.row = d.a;
      g.c.row = d.c;
      g.out.row = d.out;
    } else if (d.a != g.m * g.a.row || d.out != g.m * g.out.row ||
               (g.c.data != nullptr && d.c != g.m * g.c.row)) {
      return;
    }
    g.m *= d.size;
    batch.pop_back();
  }
}

// The columns [from, from + n) of one call: a whole product, or panels of a packed b
// with the panel as one more batch dimension.
struct Columns {
  int64_t from, n, panels;
};

invar_cuda_mm_args args_of(const Gemm &g, const Batch &batch, const BatchDim &where,
                           const Columns &columns) {
  invar_cuda_mm_args args{};
  const int64_t panel = g.k * INVAR_CUDA_PANEL;  // elements of a packed one
  const int64_t b = g.b_packed ? columns.from / INVAR_CUDA_PANEL * panel : columns.from * g.b.col;
  args.m = g.m;
  args.n = columns.n;
  args.k = g.k;
  args.a = {at(g.a.data, where.a, g.a.dtype), g.a.row, g.a.col, g.a.dtype, 0};
  args.b = {at(g.b.data, where.b + b, g.b.dtype), g.b_packed ? INVAR_CUDA_PANEL : g.b.row,
            g.b_packed ? 1 : g.b.col, g.b.dtype, 0};
  args.c = {at(g.c.data, where.c + columns.from * g.c.col, g.c.dtype), g.c.row, g.c.col,
            g.c.dtype, 0};
  args.out = {at(g.out_data, where.out + columns.from * g.out.col, g.out.dtype), g.out.row,
              g.out.col, g.out.dtype, 0};
  for (invar_cuda_batch &d : args.batch) {
    d.size = 1;
  }
  size_t i = 0;
  for (const BatchDim &d : batch) {
    args.batch[i++] = {d.size, d.a, d.b, d.c, d.out};
  }
  if (columns.panels > 1) {
    args.batch[i] = {columns.panels, 0, panel, INVAR_CUDA_PANEL * g.c.col,
                     INVAR_CUDA_PANEL * g.out.col};
  }
  args.alpha = g.alpha;
  args.beta = g.beta;
  return args;
}

void call(const invar_cuda_mm_args &args, const char *op) {
  const int64_t bytes = stage1().mm_workspace(&args);
  if (bytes < 0) {
    fail(op, ": sizes out of range: m = ", args.m, ", n = ", args.n, ", k = ", args.k);
  }
  const Workspace workspace(bytes);
  stage1_ok(stage1().mm(&args, workspace.data(), workspace.bytes(), current_stream()), op);
}

void call_columns(const Gemm &g, const Batch &batch, const BatchDim &where, const char *op) {
  if (!g.b_packed) {
    call(args_of(g, batch, where, {0, g.n, 1}), op);
    return;
  }
  const int64_t panels = g.n / INVAR_CUDA_PANEL;
  const int64_t rest = g.n % INVAR_CUDA_PANEL;
  if (panels > 0) {
    call(args_of(g, batch, where, {0, INVAR_CUDA_PANEL, panels}), op);
  }
  if (rest > 0) {
    call(args_of(g, batch, where, {panels * INVAR_CUDA_PANEL, rest, 1}), op);
  }
}

// One call takes so many batch dimensions, and a packed b needs one of them.
constexpr size_t most_dims = INVAR_CUDA_BATCH_DIMS - 1;

void each_outer(const Gemm &g, const Batch &batch, size_t outer, BatchDim where, const char *op) {
  if (batch.size() - outer <= most_dims) {
    call_columns(g, Batch(batch.begin() + static_cast<ptrdiff_t>(outer), batch.end()), where, op);
    return;
  }
  const BatchDim &d = batch[outer];
  for (int64_t i = 0; i < d.size; i++) {
    each_outer(g, batch, outer + 1, where, op);
    where.a += d.a;
    where.b += d.b;
    where.c += d.c;
    where.out += d.out;
  }
}

}  // namespace

void run(Gemm &&g, const char *op) {
  Batch batch;
  for (const BatchDim &d : g.batch) {
    if (d.size == 0) {
      return;
    }
    batch.push_back(d);
  }
  fold(g, batch);
  if (g.m > 0 && g.n > 0) {
    each_outer(g, batch, 0, {}, op);
  }
}

void pack_into(const Arg &weight, const Arg &packed) {
  const View &w = weight.v;
  // The weight [n, k] is the operand b [k, n] of x . b.
  const invar_cuda_in b{data(weight), w.strides[1], w.strides[0], w.dtype, 0};
  stage1_ok(stage1().pack(&b, w.sizes[0], w.sizes[1], mutable_data(packed), current_stream()),
            "pack");
}

void control_into(const Arg &a, const Arg &b, const Arg &out) {
  invar_cuda_mm_args args{};
  args.m = a.v.sizes[0];
  args.n = b.v.sizes[1];
  args.k = a.v.sizes[1];
  args.a = {data(a), a.v.strides[0], a.v.strides[1], a.v.dtype, 0};
  args.b = {data(b), b.v.strides[0], b.v.strides[1], b.v.dtype, 0};
  args.out = {mutable_data(out), out.v.strides[0], out.v.strides[1], out.v.dtype, 0};
  for (invar_cuda_batch &d : args.batch) {
    d.size = 1;
  }
  args.alpha = 1.0F;
  stage1_ok(stage1().control_mm(&args, current_stream()), "_control_mm");
}

}  // namespace invar
