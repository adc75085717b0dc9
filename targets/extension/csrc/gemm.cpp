#include "gemm.h"

#include "parallel.h"
#include "stage1.h"

#include <algorithm>
#include <utility>

namespace invar {
namespace {

// Multiply-adds below which a second thread costs more than it saves.
constexpr int64_t thread_work = 1 << 17;
// Rows that a block of rows should have at least: b is read once per block.
constexpr int64_t block_rows = 48;

const void *at(const void *base, int64_t elements, int32_t dtype) {
  return base == nullptr ? nullptr
                         : static_cast<const char *>(base) + elements * element_size(dtype);
}

// Turns batch dimensions into rows where b is the same for all of them and the
// rows of the others follow on: x[..., k] @ w[k, n] is one product.
void fold_batch(Gemm &g) {
  const auto *kept = std::remove_if(g.batch.begin(), g.batch.end(),
                                    [](const BatchDim &d) { return d.size == 1; });
  g.batch.shrink(static_cast<size_t>(kept - g.batch.begin()));
  while (!g.batch.empty() && g.m > 0) {
    const BatchDim d = g.batch.back();
    const bool has_c = g.c.data != nullptr;
    if (d.b != 0) {
      return;
    }
    if (g.m == 1) {
      g.a.row = d.a;
      g.c.row = d.c;
      g.out.row = d.out;
    } else if (d.a != g.m * g.a.row || d.out != g.m * g.out.row ||
               (has_c && d.c != g.m * g.c.row)) {
      return;
    }
    g.m *= d.size;
    g.batch.pop_back();
  }
}

// A product with few columns wastes most of a panel of 64. Its transpose, b' . a',
// has the same bits: each element is the same chain of multiply-adds.
void transpose_when_narrow(Gemm &g) {
  if (g.b_packed) {
    return;
  }
  const auto padded = [](int64_t rows, int64_t cols) {
    return rows * ((cols + INVAR_CPU_PANEL - 1) / INVAR_CPU_PANEL * INVAR_CPU_PANEL);
  };
  if (g.n >= INVAR_CPU_PANEL || padded(g.n, g.m) * 4 > padded(g.m, g.n) * 3) {
    return;
  }
  std::swap(g.m, g.n);
  std::swap(g.a, g.b);
  for (Operand *x : {&g.a, &g.b, &g.c, &g.out}) {
    std::swap(x->row, x->col);
  }
  for (BatchDim &d : g.batch) {
    std::swap(d.a, d.b);
  }
}

invar_cpu_in in(const Operand &x, int64_t offset) {
  return {at(x.data, offset, x.dtype), x.row, x.col, x.dtype, 0};
}

// Where matrix `index` of the batch lies.
BatchDim locate(const Small<BatchDim, 4> &batch, int64_t index) {
  BatchDim where;
  for (size_t at = batch.size(); at-- > 0;) {
    const BatchDim &d = batch[at];
    const int64_t i = index % d.size;
    index /= d.size;
    where.a += i * d.a;
    where.b += i * d.b;
    where.c += i * d.c;
    where.out += i * d.out;
  }
  return where;
}

void run_block(const Gemm &g, const BatchDim &where, int64_t row_begin, int64_t row_end,
               int64_t panel_begin, int64_t panel_end, const char *op) {
  const Stage1 &lib = stage1();
  invar_cpu_mm_args args{};
  args.m = row_end - row_begin;
  args.n = g.n;
  args.k = g.k;
  args.a = in(g.a, where.a + row_begin * g.a.row);
  args.b = in(g.b, where.b);
  args.c = in(g.c, where.c + row_begin * g.c.row);
  args.out.data = static_cast<char *>(g.out_data) +
                  (where.out + row_begin * g.out.row) * element_size(g.out.dtype);
  args.out.row = g.out.row;
  args.out.col = g.out.col;
  args.out.dtype = g.out.dtype;
  args.alpha = g.alpha;
  args.beta = g.c.data != nullptr ? g.beta : 0.0F;
  args.b_packed = g.b_packed ? 1 : 0;
  const int64_t bytes = lib.mm_scratch(&args);
  if (bytes < 0) {
    fail(op, ": sizes out of range: m = ", args.m, ", n = ", args.n, ", k = ", args.k);
  }
  stage1_ok(lib.mm(&args, panel_begin, panel_end, scratch(Slot::kernel, bytes), bytes), op);
}

// Too little work for a second thread. In floating point, for it may be huge.
bool small(const Gemm &g, int64_t panels) {
  const double work = static_cast<double>(g.m) * static_cast<double>(std::max<int64_t>(g.k, 1)) *
                      static_cast<double>(panels * INVAR_CPU_PANEL);
  return work <= static_cast<double>(thread_work);
}

}  // namespace

void run(Gemm &&g, const char *op) {
  int64_t matrices = 1;
  fold_batch(g);
  for (const BatchDim &d : g.batch) {
    matrices *= d.size;
  }
  if (matrices == 0 || g.m == 0 || g.n == 0) {
    return;
  }
  transpose_when_narrow(g);
  const int64_t panels = (g.n + INVAR_CPU_PANEL - 1) / INVAR_CPU_PANEL;
  if (matrices == 1 && small(g, panels)) {
    run_block(g, {}, 0, g.m, 0, panels, op);
    return;
  }
  const int64_t wanted = 2 * num_threads();  // tasks, so that threads end together
  int64_t blocks = 1;
  if (matrices * panels < wanted) {
    blocks = std::clamp<int64_t>(g.m / block_rows, 1, (wanted - 1) / (matrices * panels) + 1);
  }
  const int64_t rows = (g.m + blocks - 1) / blocks;
  const int64_t work = std::max<int64_t>(1, rows * std::max<int64_t>(g.k, 1) * INVAR_CPU_PANEL);
  const int64_t grain = std::max<int64_t>(1, thread_work / work);
  // Tasks in the order matrix, block of rows, panel.
  parallel_for(matrices * blocks * panels, grain, [&](int64_t begin, int64_t end) {
    while (begin < end) {
      const int64_t panel = begin % panels;
      const int64_t block = begin / panels % blocks;
      const int64_t last = std::min(panels, panel + (end - begin));
      run_block(g, locate(g.batch, begin / panels / blocks), std::min(g.m, block * rows),
                std::min(g.m, (block + 1) * rows), panel, last, op);
      begin += last - panel;
    }
  });
}

void pack_into(const Arg &weight, const Arg &packed) {
  const View &w = weight.v;
  const int64_t n = w.sizes[0];
  const int64_t k = w.sizes[1];
  // The weight [n, k] is the operand b [k, n] of x . b.
  const invar_cpu_in b{data(weight), w.strides[1], w.strides[0], w.dtype, 0};
  void *to = mutable_data(packed);
  parallel_for(stage1().mm_panels(n), 1 + (1 << 15) / (k * INVAR_CPU_PANEL + 1),
               [&](int64_t begin, int64_t end) {
                 stage1_ok(stage1().pack(&b, n, k, to, begin, end), "pack");
               });
}

void control_into(const Arg &a, const Arg &b, const Arg &out) {
  invar_cpu_mm_args args{};
  args.m = a.v.sizes[0];
  args.n = b.v.sizes[1];
  args.k = a.v.sizes[1];
  args.a = {data(a), a.v.strides[0], a.v.strides[1], a.v.dtype, 0};
  args.b = {data(b), b.v.strides[0], b.v.strides[1], b.v.dtype, 0};
  args.out = {mutable_data(out), out.v.strides[0], out.v.strides[1], out.v.dtype, 0};
  args.alpha = 1.0F;
  stage1_ok(stage1().control_mm(&args), "_control_mm");
}

}  // namespace invar
