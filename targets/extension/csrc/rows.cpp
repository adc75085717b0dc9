#include "rows.h"

#include "parallel.h"
#include "stage1.h"

#include <algorithm>
#include <cstring>

#include "rowplan.h"

namespace invar {
namespace {

// Elements below which a second thread costs more than it saves.
constexpr int64_t thread_elements = 1 << 14;

using RowFunction = decltype(&invar_cpu_sum);

const char *shift(const void *base, int64_t elements, int32_t dtype) {
  return static_cast<const char *>(base) + elements * element_size(dtype);
}

int64_t rows_per_thread(int64_t cols) {
  return 1 + thread_elements / std::max<int64_t>(1, cols);
}

// Copies the elements that dims enumerate from base into a row without gaps.
// Operand `which` of the steps counts.
void gather(const RowDims &dims, size_t which, const char *base, int64_t size,
            char *to) {
  for_runs(dims, 0, count(dims), [&](const Steps &offset, int64_t n, const Steps &step) {
    const char *from = base + offset[which] * size;
    for (int64_t i = 0; i < n; i++) {
      std::memcpy(to, from, static_cast<size_t>(size));
      to += size;
      from += step[which] * size;
    }
  });
}

void call_rows(RowFunction function, const invar_cpu_row_args &args, const char *op) {
  const int64_t bytes = stage1().row_scratch(&args);
  if (bytes < 0) {
    fail(op, ": sizes out of range: ", args.rows, " rows of ", args.cols, " elements");
  }
  stage1_ok(function(&args, 0, args.rows, scratch(Slot::kernel, bytes), bytes), op);
}

// One operator of stage 1 over rows: steps 0 are x's, steps 1 out's.
struct RowJob {
  RowFunction function;
  RowDims rows;
  RowDims cols;
  const void *x;
  int32_t x_dtype;
  void *out;
  int32_t out_dtype;
};

void run(RowJob &job, const char *op) {
  coalesce(job.rows);
  coalesce(job.cols);
  const int64_t cols = count(job.cols);
  const int64_t size = element_size(job.x_dtype);
  const RowDim &col = job.cols.back();
  const bool gathered = job.cols.size() > 1;
  invar_cpu_row_args common{};
  common.cols = cols;
  common.x.dtype = job.x_dtype;
  common.x.col = gathered ? 1 : col.step[0];
  common.out.dtype = job.out_dtype;
  common.out.col = col.step[1];
  const auto run_of = [&](const Steps &offset, int64_t n, const Steps &step) {
    invar_cpu_row_args args = common;
    args.rows = n;
    args.x.data = shift(job.x, offset[0], job.x_dtype);
    args.x.row = step[0];
    args.out.data = const_cast<char *>(shift(job.out, offset[1], job.out_dtype));
    args.out.row = step[1];
    if (!gathered) {
      call_rows(job.function, args, op);
      return;
    }
    args.rows = 1;
    auto *row = static_cast<char *>(scratch(Slot::gather, cols * size));
    const auto *x = static_cast<const char *>(args.x.data);
    auto *out = static_cast<char *>(args.out.data);
    for (int64_t i = 0; i < n; i++) {
      gather(job.cols, 0, x + i * step[0] * size, size, row);
      args.x.data = row;
      args.out.data = out + i * step[1] * element_size(job.out_dtype);
      call_rows(job.function, args, op);
    }
  };
  parallel_for(count(job.rows), rows_per_thread(cols),
               [&](int64_t begin, int64_t end) { for_runs(job.rows, begin, end, run_of); });
}

}  // namespace

void reduce(Reduction kind, const Arg &x, const Mask &reduced, const Arg &out,
            bool keepdim, const char *op) {
  const View &vx = x.v;
  const View &vo = out.v;
  RowJob job{kind == Reduction::sum ? stage1().sum : stage1().mean,
             {},
             {},
             data(x),
             vx.dtype,
             mutable_data(out),
             vo.dtype};
  int64_t o = 0;
  for (int64_t i = 0; i < vx.dim; i++) {
    if (reduced[static_cast<size_t>(i)]) {
      job.cols.push_back({vx.sizes[i], {vx.strides[i]}});
      o += keepdim ? 1 : 0;
    } else {
      job.rows.push_back({vx.sizes[i], {vx.strides[i], vo.strides[o]}});
      o++;
    }
  }
  run(job, op);
}

void softmax(Softmax kind, const Arg &x, int64_t dim, const Arg &out, const char *op) {
  const View &vx = x.v;
  const View &vo = out.v;
  RowJob job{kind == Softmax::plain ? stage1().softmax : stage1().log_softmax,
             {},
             {},
             data(x),
             vx.dtype,
             mutable_data(out),
             vo.dtype};
  for (int64_t i = 0; i < vx.dim; i++) {
    (i == dim ? job.cols : job.rows)
        .push_back({vx.sizes[i], {vx.strides[i], vo.strides[i]}});
  }
  if (count(job.cols) == 0) {
    return;  // no element
  }
  run(job, op);
}

namespace {

// Tensors of a norm, as positions in Steps.
enum NormOperand : size_t { at_x = 0, at_residual = 1, at_out = 2, at_residual_out = 3 };

struct NormJob {
  RowDims rows;
  RowDims cols;
  bool gathered = false;
  invar_cpu_norm_args common{};
  const Norm *norm = nullptr;
};

// The weight as one row: in place where its elements are equally spaced, else
// copied into `copy`.
invar_cpu_in weight_row(const Arg &weight, std::vector<char> &copy) {
  const View &v = weight.v;
  RowDims dims;
  for (int64_t i = 0; i < v.dim; i++) {
    dims.push_back({v.sizes[i], {v.strides[i]}});
  }
  coalesce(dims);
  if (dims.size() == 1) {
    return {data(weight), 0, dims.back().step[0], v.dtype, 0};
  }
  copy.resize(static_cast<size_t>(count(dims) * element_size(v.dtype)));
  gather(dims, 0, static_cast<const char *>(data(weight)), element_size(v.dtype), copy.data());
  return {copy.data(), 0, 1, v.dtype, 0};
}

void call_norm(const invar_cpu_norm_args &args, bool add, const char *op) {
  const int64_t bytes = stage1().norm_scratch(&args);
  if (bytes < 0) {
    fail(op, ": sizes out of range: ", args.rows, " rows of ", args.cols, " elements");
  }
  const auto function = add ? stage1().add_rms_norm : stage1().rms_norm;
  stage1_ok(function(&args, 0, args.rows, scratch(Slot::kernel, bytes), bytes), op);
}

void norm_run(const NormJob &job, const Steps &offset, int64_t n, const Steps &step,
              const char *op) {
  invar_cpu_norm_args args = job.common;
  const bool add = job.norm->residual != nullptr;
  const auto place = [&](auto &operand, size_t which, int64_t rows_in) {
    operand.data = const_cast<char *>(
        shift(operand.data, offset[which] + rows_in * step[which], operand.dtype));
    operand.row = step[which];
  };
  for (int64_t i = 0; i < n; i += args.rows) {
    args = job.common;
    args.rows = job.gathered ? 1 : n;
    place(args.x, at_x, i);
    place(args.out, at_out, i);
    if (add) {
      place(args.residual, at_residual, i);
      place(args.residual_out, at_residual_out, i);
    }
    if (job.gathered) {
      const auto flatten = [&](invar_cpu_in &operand, size_t which, Slot slot) {
        const int64_t size = element_size(operand.dtype);
        auto *row = static_cast<char *>(scratch(slot, args.cols * size));
        gather(job.cols, which, static_cast<const char *>(operand.data), size, row);
        operand.data = row;
        operand.col = 1;
      };
      flatten(args.x, at_x, Slot::gather);
      if (add) {
        flatten(args.residual, at_residual, Slot::residual);
      }
    }
    call_norm(args, add, op);
  }
}

}  // namespace

void rms_norm(const Norm &norm, const char *op) {
  const View &x = norm.x->v;
  const View &out = norm.out->v;
  const bool add = norm.residual != nullptr;
  const View &residual = add ? norm.residual->v : x;
  const View &residual_out = add ? norm.residual_out->v : out;
  NormJob job;
  job.norm = &norm;
  for (int64_t i = 0; i < x.dim; i++) {
    (i < x.dim - norm.norm_dims ? job.rows : job.cols)
        .push_back({x.sizes[i],
                    {x.strides[i], residual.strides[i], out.strides[i], residual_out.strides[i]}});
  }
  coalesce(job.rows);
  coalesce(job.cols);
  job.gathered = job.cols.size() > 1;
  const Steps &col = job.cols.back().step;
  std::vector<char> weight_copy;
  job.common.cols = count(job.cols);
  job.common.x = {data(*norm.x), 0, col[at_x], x.dtype, 0};
  job.common.out = {mutable_data(*norm.out), 0, 1, out.dtype, 0};
  if (add) {
    job.common.residual = {data(*norm.residual), 0, col[at_residual], residual.dtype, 0};
    job.common.residual_out = {mutable_data(*norm.residual_out), 0, 1, residual_out.dtype, 0};
  }
  if (norm.weight != nullptr) {
    job.common.weight = weight_row(*norm.weight, weight_copy);
  }
  job.common.eps = norm.eps;
  parallel_for(count(job.rows), rows_per_thread(job.common.cols),
               [&](int64_t begin, int64_t end) {
                 for_runs(job.rows, begin, end, [&](const Steps &o, int64_t n, const Steps &s) {
                   norm_run(job, o, n, s, op);
                 });
               });
}

}  // namespace invar
