#include "compute.h"

#include "gemm.h"

namespace invar {
namespace {

// The dtype check that every product shares.
Why same_dtype(const Arg &a, const Arg &b) {
  if (!supported(a) || !supported(b)) {
    return Why::dtype;
  }
  return a.v.dtype == b.v.dtype ? Why::none : Why::mixed;
}

int64_t row_step(const View &v, int64_t dim) { return dim < 0 ? 0 : v.strides[dim]; }

// Dimensions row and col of t as a matrix; -1 is a dimension of size one.
Operand matrix(const Arg &t, int64_t row, int64_t col) {
  return {data(t), t.v.dtype, row_step(t.v, row), row_step(t.v, col)};
}

// The step of dimension i (of ndim, counted in the result) of v expanded to it.
int64_t expanded_step(const View &v, int64_t ndim, int64_t i) {
  const int64_t own = i - (ndim - v.dim);
  return own < 0 || v.sizes[own] == 1 ? 0 : v.strides[own];
}

void set_addend(Gemm &g, const Addend &add, int64_t ndim, int64_t row, int64_t col) {
  g.alpha = add.alpha;
  if (add.c == nullptr || add.beta == 0.0F) {
    return;
  }
  const View &v = add.c->v;
  g.beta = add.beta;
  g.c = {data(*add.c), v.dtype, row < 0 ? 0 : expanded_step(v, ndim, row),
         col < 0 ? 0 : expanded_step(v, ndim, col)};
}

void set_out(Gemm &g, const Arg &out, int64_t row, int64_t col) {
  g.out_data = mutable_data(out);
  g.out = {nullptr, out.v.dtype, row_step(out.v, row), row_step(out.v, col)};
}

bool expands(const View &v, const Sizes &to) {
  const auto ndim = static_cast<int64_t>(to.size());
  if (v.dim > ndim) {
    return false;
  }
  for (int64_t i = 0; i < v.dim; i++) {
    const int64_t wanted = to[static_cast<size_t>(i + ndim - v.dim)];
    if (v.sizes[i] != 1 && v.sizes[i] != wanted) {
      return false;
    }
  }
  return true;
}

// Sizes of the batch dimensions of a matmul, broadcast; false when they do not fit.
bool broadcast(const View &a, const View &b, Sizes &out) {
  const int64_t na = a.dim > 2 ? a.dim - 2 : 0;
  const int64_t nb = b.dim > 2 ? b.dim - 2 : 0;
  const int64_t n = na > nb ? na : nb;
  for (int64_t i = 0; i < n; i++) {
    const int64_t ia = i - (n - na);
    const int64_t ib = i - (n - nb);
    const int64_t sa = ia < 0 ? 1 : a.sizes[ia];
    const int64_t sb = ib < 0 ? 1 : b.sizes[ib];
    if (sa != sb && sa != 1 && sb != 1) {
      return false;
    }
    out.push_back(sa == 1 ? sb : sa);
  }
  return true;
}

}  // namespace

Why check_mm(const Arg &a, const Arg &b) {
  const View &va = a.v;
  const View &vb = b.v;
  const Why why = same_dtype(a, b);
  if (why != Why::none) {
    return why;
  }
  return va.dim == 2 && vb.dim == 2 && va.sizes[1] == vb.sizes[0] ? Why::none : Why::shape;
}

Why check_bmm(const Arg &a, const Arg &b) {
  const View &va = a.v;
  const View &vb = b.v;
  const Why why = same_dtype(a, b);
  if (why != Why::none) {
    return why;
  }
  return va.dim == 3 && vb.dim == 3 && va.sizes[0] == vb.sizes[0] && va.sizes[2] == vb.sizes[1]
             ? Why::none
             : Why::shape;
}

Why check_mv(const Arg &a, const Arg &x) {
  const View &va = a.v;
  const View &vx = x.v;
  const Why why = same_dtype(a, x);
  if (why != Why::none) {
    return why;
  }
  return va.dim == 2 && vx.dim == 1 && va.sizes[1] == vx.sizes[0] ? Why::none : Why::shape;
}

Why check_dot(const Arg &x, const Arg &y) {
  const View &vx = x.v;
  const View &vy = y.v;
  const Why why = same_dtype(x, y);
  if (why != Why::none) {
    return why;
  }
  return vx.dim == 1 && vy.dim == 1 && vx.sizes[0] == vy.sizes[0] ? Why::none : Why::shape;
}

Why check_matmul(const Arg &a, const Arg &b) {
  const View &va = a.v;
  const View &vb = b.v;
  const Why why = same_dtype(a, b);
  if (why != Why::none) {
    return why;
  }
  if (va.dim == 0 || vb.dim == 0) {
    return Why::shape;
  }
  const int64_t k = vb.dim == 1 ? vb.sizes[0] : vb.sizes[vb.dim - 2];
  Sizes batch;
  return va.sizes[va.dim - 1] == k && broadcast(va, vb, batch) ? Why::none : Why::shape;
}

Why check_add(const Arg &c, const Arg &a, const Sizes &product) {
  const View &vc = c.v;
  const View &va = a.v;
  const Why why = same_dtype(c, a);
  if (why != Why::none) {
    return why;
  }
  return expands(vc, product) ? Why::none : Why::shape;
}

Why check_linear(const Arg &x, const Arg &weight, const Arg *bias) {
  const View &vx = x.v;
  const View &vw = weight.v;
  const Why why = same_dtype(x, weight);
  if (why != Why::none) {
    return why;
  }
  if (vx.dim == 0 || vw.dim != 2 || vx.sizes[vx.dim - 1] != vw.sizes[1]) {
    return Why::shape;
  }
  if (bias == nullptr) {
    return Why::none;
  }
  const View &vb = bias->v;
  const Why bias_why = same_dtype(x, *bias);
  if (bias_why != Why::none) {
    return bias_why;
  }
  return vb.dim == 1 && vb.sizes[0] == vw.sizes[0] ? Why::none : Why::shape;
}

Why check_reduce(const Arg &x, const int64_t *dims, size_t count, Mask &mask) {
  const View &v = x.v;
  if (!supported(x)) {
    return Why::dtype;
  }
  mask.reset();
  if (v.dim > static_cast<int64_t>(mask.size())) {
    return Why::shape;
  }
  if (count == 0) {
    mask.set();
    return Why::none;
  }
  for (size_t at = 0; at < count; at++) {
    const std::optional<int64_t> i = wrap_dim(dims[at], v.dim);
    if (!i) {
      return Why::shape;
    }
    if (v.dim == 0) {
      continue;
    }
    if (mask[static_cast<size_t>(*i)]) {
      return Why::shape;  // named twice
    }
    mask[static_cast<size_t>(*i)] = true;
  }
  return Why::none;
}

Sizes mm_sizes(const Arg &a, const Arg &b) { return {a.v.sizes[0], b.v.sizes[1]}; }

Sizes bmm_sizes(const Arg &a, const Arg &b) {
  const View &va = a.v;
  return {va.sizes[0], va.sizes[1], b.v.sizes[2]};
}

Sizes matmul_sizes(const Arg &a, const Arg &b) {
  const View &va = a.v;
  const View &vb = b.v;
  Sizes sizes;
  broadcast(va, vb, sizes);
  if (va.dim > 1) {
    sizes.push_back(va.sizes[va.dim - 2]);
  }
  if (vb.dim > 1) {
    sizes.push_back(vb.sizes[vb.dim - 1]);
  }
  return sizes;
}

Sizes reduce_sizes(const Arg &x, const Mask &mask, bool keepdim) {
  const View &v = x.v;
  Sizes sizes;
  for (int64_t i = 0; i < v.dim; i++) {
    if (!mask[static_cast<size_t>(i)]) {
      sizes.push_back(v.sizes[i]);
    } else if (keepdim) {
      sizes.push_back(1);
    }
  }
  return sizes;
}

void mm_into(const Arg &a, const Arg &b, const Addend &add, const Arg &out) {
  const View &va = a.v;
  const View &vb = b.v;
  Gemm g;
  g.m = va.sizes[0];
  g.k = va.sizes[1];
  g.n = vb.sizes[1];
  g.a = matrix(a, 0, 1);
  g.b = matrix(b, 0, 1);
  set_addend(g, add, 2, 0, 1);
  set_out(g, out, 0, 1);
  run(std::move(g), "mm");
}

void bmm_into(const Arg &a, const Arg &b, const Addend &add, const Arg &out) {
  const View &va = a.v;
  const View &vb = b.v;
  const View &vo = out.v;
  Gemm g;
  g.m = va.sizes[1];
  g.k = va.sizes[2];
  g.n = vb.sizes[2];
  g.a = matrix(a, 1, 2);
  g.b = matrix(b, 1, 2);
  set_addend(g, add, 3, 1, 2);
  set_out(g, out, 1, 2);
  const int64_t c = g.c.data != nullptr ? expanded_step(add.c->v, 3, 0) : 0;
  g.batch.push_back({va.sizes[0], va.strides[0], vb.strides[0], c, vo.strides[0]});
  run(std::move(g), "bmm");
}

void mv_into(const Arg &a, const Arg &x, const Addend &add, const Arg &out) {
  const View &va = a.v;
  Gemm g;
  g.m = va.sizes[0];
  g.k = va.sizes[1];
  g.n = 1;
  g.a = matrix(a, 0, 1);
  g.b = matrix(x, 0, -1);
  set_addend(g, add, 1, 0, -1);
  set_out(g, out, 0, -1);
  run(std::move(g), "mv");
}

void dot_into(const Arg &x, const Arg &y, const Arg &out) {
  const View &vx = x.v;
  Gemm g;
  g.m = 1;
  g.n = 1;
  g.k = vx.sizes[0];
  g.a = matrix(x, -1, 0);
  g.b = matrix(y, 0, -1);
  set_out(g, out, -1, -1);
  run(std::move(g), "dot");
}

void matmul_into(const Arg &a, const Arg &b, const Arg &out) {
  const View &va = a.v;
  const View &vb = b.v;
  const View &vo = out.v;
  const bool has_row = va.dim > 1;
  const bool has_col = vb.dim > 1;
  Gemm g;
  g.m = has_row ? va.sizes[va.dim - 2] : 1;
  g.k = va.sizes[va.dim - 1];
  g.n = has_col ? vb.sizes[vb.dim - 1] : 1;
  g.a = matrix(a, has_row ? va.dim - 2 : -1, va.dim - 1);
  g.b = matrix(b, has_col ? vb.dim - 2 : 0, has_col ? vb.dim - 1 : -1);
  Sizes batch;
  broadcast(va, vb, batch);
  const auto n = static_cast<int64_t>(batch.size());
  set_out(g, out, has_row ? n : -1, has_col ? n + (has_row ? 1 : 0) : -1);
  for (int64_t i = 0; i < n; i++) {
    // Counted with the two matrix dimensions, so that a vector has no batch.
    BatchDim d{batch[static_cast<size_t>(i)], 0, 0, 0, vo.strides[i]};
    d.a = va.dim > 2 ? expanded_step(va, n + 2, i) : 0;
    d.b = vb.dim > 2 ? expanded_step(vb, n + 2, i) : 0;
    g.batch.push_back(d);
  }
  run(std::move(g), "matmul");
}

void linear_into(const Arg &x, const Arg &b, bool packed, int64_t n,
                 const Arg *bias, const Arg &out) {
  const View &vx = x.v;
  const View &vb = b.v;
  const View &vo = out.v;
  const int64_t rows = vx.dim - 2;  // the dimension of rows; -1 for a vector
  Gemm g;
  g.m = vx.dim > 1 ? vx.sizes[rows] : 1;
  g.k = vx.sizes[vx.dim - 1];
  g.n = n;
  g.a = matrix(x, vx.dim > 1 ? rows : -1, vx.dim - 1);
  g.b_packed = packed;
  g.b = packed ? Operand{data(b), vb.dtype, 0, 0} : matrix(b, 1, 0);
  if (bias != nullptr) {
    set_addend(g, {bias, 1.0F, 1.0F}, 1, -1, 0);
  }
  set_out(g, out, vx.dim > 1 ? rows : -1, vx.dim - 1);
  for (int64_t i = 0; i < rows; i++) {
    g.batch.push_back({vx.sizes[i], vx.strides[i], 0, 0, vo.strides[i]});
  }
  run(std::move(g), "linear");
}

}  // namespace invar
