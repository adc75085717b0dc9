// Whether a result may be written where a caller's out= tensor lies.
#pragma once

#include "tensor.h"

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <utility>

namespace invar {

// First byte and the one past the last that the elements of x touch.
inline std::pair<uintptr_t, uintptr_t> extent(const Arg &x) {
  int64_t last = 0;
  for (int64_t i = 0; i < x.v.dim; i++) {
    if (x.v.sizes[i] == 0) {
      return {0, 0};
    }
    last += (x.v.sizes[i] - 1) * x.v.strides[i];
  }
  const auto begin = reinterpret_cast<uintptr_t>(data(x));
  return {begin, begin + static_cast<uintptr_t>((last + 1) * element_size(x.v.dtype))};
}

// Whether no two elements of a view share memory, judged by sorted strides: true
// is certain, false may be too careful.
inline bool distinct(const View &v) {
  std::vector<std::pair<int64_t, int64_t>> dims;
  for (int64_t i = 0; i < v.dim; i++) {
    if (v.sizes[i] > 1) {
      dims.emplace_back(v.strides[i], v.sizes[i]);
    }
  }
  std::sort(dims.begin(), dims.end());
  int64_t reach = 0;  // of the dimensions so far, in elements past the first
  for (const auto &[stride, size] : dims) {
    if (stride <= reach) {
      return false;
    }
    reach += stride * (size - 1);
  }
  return true;
}

// True when out's elements are distinct and no input lies among them. The inputs
// are of dtypes that stage 1 knows.
inline bool writable_in_place(const Arg &out, std::initializer_list<const Arg *> inputs) {
  const auto [begin, end] = extent(out);
  for (const Arg *input : inputs) {
    const auto [from, to] = extent(*input);
    if (from < end && begin < to) {
      return false;
    }
  }
  return distinct(out.v);
}

}  // namespace invar
