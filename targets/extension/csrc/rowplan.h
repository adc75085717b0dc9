// Dimensions as lists of (size, steps), merged where they follow on in memory.
#pragma once

#include <array>
#include <cstdint>

#include "small.h"

namespace invar {

// Up to four tensors are walked together.
using Steps = std::array<int64_t, 4>;

struct RowDim {
  int64_t size;
  Steps step;
};

using RowDims = Small<RowDim>;

inline void coalesce(RowDims &dims) {
  size_t kept = 0;
  for (size_t at = 0; at < dims.size(); at++) {
    const RowDim d = dims[at];
    if (d.size == 1) {
      continue;
    }
    if (kept > 0) {
      RowDim &outer = dims[kept - 1];
      bool follows = true;
      for (size_t i = 0; i < d.step.size(); i++) {
        follows = follows && outer.step[i] == d.size * d.step[i];
      }
      if (follows) {
        outer = {outer.size * d.size, d.step};
        continue;
      }
    }
    dims[kept++] = d;
  }
  dims.shrink(kept);
  if (kept == 0) {
    dims.push_back({1, {}});
  }
}

inline int64_t count(const RowDims &dims) {
  int64_t n = 1;
  for (const RowDim &d : dims) {
    n *= d.size;
  }
  return n;
}

// Calls body(offsets, rows, steps) for the runs of equally spaced rows that cover
// [begin, end) of the rows that dims enumerate, last dimension fastest.
template <class Body>
void for_runs(const RowDims &dims, int64_t begin, int64_t end, const Body &body) {
  const RowDim &inner = dims.back();
  while (begin < end) {
    Steps offset{};
    int64_t rest = begin;
    for (size_t at = dims.size(); at-- > 0;) {
      const RowDim &d = dims[at];
      const int64_t i = at == 0 ? rest : rest % d.size;
      rest = at == 0 ? 0 : rest / d.size;
      for (size_t t = 0; t < offset.size(); t++) {
        offset[t] += i * d.step[t];
      }
    }
    const int64_t into = dims.size() == 1 ? begin : begin % inner.size;
    const int64_t rows = std::min(end - begin, inner.size - into);
    body(offset, rows, inner.step);
    begin += rows;
  }
}

}  // namespace invar
