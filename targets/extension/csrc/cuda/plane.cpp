#include "plane.h"

#include <torch/csrc/inductor/aoti_torch/c/shim.h>

namespace invar {
namespace {

int64_t count(const View &v, const Dims &dims) {
  int64_t n = 1;
  for (const int64_t d : dims) {
    n *= v.sizes[d];
  }
  return n;
}

// The step between neighbours when dims are walked in order, the last one fastest;
// nullopt when it is not the same everywhere.
std::optional<int64_t> step_of(const View &v, const Dims &dims) {
  int64_t step = 0, reach = 0;  // reach: of the dimensions walked so far
  for (auto d = dims.rbegin(); d != dims.rend(); ++d) {
    const int64_t size = v.sizes[*d], stride = v.strides[*d];
    if (size == 1) {
      continue;
    }
    if (reach == 0) {
      step = stride;
      reach = size;
    } else if (stride == step * reach) {
      reach *= size;
    } else {
      return std::nullopt;
    }
  }
  return step;
}

// The same memory with the dimensions in another order.
Tensor permuted(const Arg &x, const Dims &rows, const Dims &cols) {
  Sizes sizes;
  Sizes strides;
  for (const Dims *dims : {&rows, &cols}) {
    for (const int64_t d : *dims) {
      sizes.push_back(x.v.sizes[d]);
      strides.push_back(x.v.strides[d]);
    }
  }
  AtenTensorHandle view = nullptr;  // the offset counts from where x begins
  torch_ok(aoti_torch__reinterpret_tensor(x.t->get(), static_cast<int64_t>(sizes.size()),
                                          sizes.data(), strides.data(), 0, &view),
           "view a tensor");
  return Tensor(view);
}

void copy(const Tensor &to, const Tensor &from) {
  torch_ok(aoti_torch_copy_(to.get(), from.get(), 0), "copy a tensor");
}

}  // namespace

Plane::Plane(const Arg &x, const Dims &rows, const Dims &cols, bool copies)
    : rows_(count(x.v, rows)), cols_(count(x.v, cols)), dtype_(x.v.dtype) {
  const std::optional<int64_t> row = step_of(x.v, rows);
  const std::optional<int64_t> col = step_of(x.v, cols);
  if (row && col) {
    row_ = *row;
    col_ = cols_ > 1 ? *col : 1;
    tensor_ = *x.t;
    return;
  }
  home_ = permuted(x, rows, cols);
  const View v = view(*home_);
  tensor_ = empty(Sizes(v.sizes, v.sizes + v.dim), v.torch_dtype);
  row_ = cols_;
  if (copies) {
    copy(*tensor_, *home_);
  }
}

Plane Plane::of(const Arg &x, const Dims &rows, const Dims &cols) { return {x, rows, cols, true}; }
Plane Plane::into(const Arg &x, const Dims &rows, const Dims &cols) {
  return {x, rows, cols, false};
}

void Plane::finish() const {
  if (home_) {
    copy(*home_, *tensor_);
  }
}

}  // namespace invar
