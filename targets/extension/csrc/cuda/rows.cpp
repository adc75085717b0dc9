#include "../rows.h"

#include "../device.h"
#include "plane.h"
#include "workspace.h"

namespace invar {
namespace {

using RowFunction = decltype(&invar_cuda_sum);

invar_cuda_in in(const Plane &p) { return {p.read(), p.row(), p.col(), p.dtype(), 0}; }
invar_cuda_out out(const Plane &p) { return {p.write(), p.row(), p.col(), p.dtype(), 0}; }

void call(RowFunction function, const Plane &x, const Plane &to, const char *op) {
  const invar_cuda_row_args args{x.rows(), x.cols(), in(x), out(to), 0, 0};
  const int64_t bytes = stage1().row_workspace(&args);
  if (bytes < 0) {
    fail(op, ": sizes out of range: ", args.rows, " rows of ", args.cols, " elements");
  }
  const Workspace workspace(bytes);
  stage1_ok(function(&args, workspace.data(), workspace.bytes(), current_stream()), op);
  to.finish();
}

Dims range(int64_t from, int64_t to) {
  Dims dims;
  for (int64_t i = from; i < to; i++) {
    dims.push_back(i);
  }
  return dims;
}

}  // namespace

void reduce(Reduction kind, const Arg &x, const Mask &reduced, const Arg &to,
            bool keepdim, const char *op) {
  Dims rows;
  Dims cols;
  Dims kept;
  for (int64_t i = 0; i < x.v.dim; i++) {
    const bool gone = reduced[static_cast<size_t>(i)];
    (gone ? cols : rows).push_back(i);
    if (!gone) {
      kept.push_back(keepdim ? i : static_cast<int64_t>(kept.size()));
    }
  }
  call(kind == Reduction::sum ? stage1().sum : stage1().mean, Plane::of(x, rows, cols),
       Plane::into(to, kept, {}), op);
}

void softmax(Softmax kind, const Arg &x, int64_t dim, const Arg &to, const char *op) {
  Dims rows;
  for (int64_t i = 0; i < x.v.dim; i++) {
    if (i != dim) {
      rows.push_back(i);
    }
  }
  const Dims cols = x.v.dim > 0 ? Dims{dim} : Dims{};
  const Plane from = Plane::of(x, rows, cols);
  if (from.rows() == 0 || from.cols() == 0) {
    return;
  }
  call(kind == Softmax::plain ? stage1().softmax : stage1().log_softmax, from,
       Plane::into(to, rows, cols), op);
}

void rms_norm(const Norm &norm, const char *op) {
  const int64_t dim = norm.x->v.dim;
  const int64_t split = dim - norm.norm_dims;
  const Dims rows = range(0, split);
  const Dims cols = range(split, dim);
  const bool add = norm.residual != nullptr;
  const Plane x = Plane::of(*norm.x, rows, cols);
  if (x.rows() == 0 || x.cols() == 0) {
    return;
  }
  std::optional<Plane> residual;
  std::optional<Plane> residual_out;
  std::optional<Plane> weight;
  const Plane to = Plane::into(*norm.out, rows, cols);
  invar_cuda_norm_args args{};
  args.rows = x.rows();
  args.cols = x.cols();
  args.x = in(x);
  args.out = out(to);
  args.eps = norm.eps;
  if (add) {
    residual = Plane::of(*norm.residual, rows, cols);
    residual_out = Plane::into(*norm.residual_out, rows, cols);
    args.residual = in(*residual);
    args.residual_out = out(*residual_out);
  }
  if (norm.weight != nullptr) {
    weight = Plane::of(*norm.weight, {}, range(0, norm.weight->v.dim));
    args.weight = in(*weight);
  }
  const auto function = add ? stage1().add_rms_norm : stage1().rms_norm;
  stage1_ok(function(&args, current_stream()), op);
  to.finish();
  if (residual_out) {
    residual_out->finish();
  }
}

}  // namespace invar
