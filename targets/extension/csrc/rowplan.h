// Dimensions as lists of (size, steps), merged where they follow on in memory.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace invar {

// Up to four tensors are walked together.
using Steps = std::array<int64_t, 4>;

struct RowDim {
  int64_t size;
  Steps step;
};

inline void coalesce(std::vector<RowDim> &dims) {
  std::vector<RowDim> merged;
  for (const RowDim &d : dims) {
    if (d.size == 1) {
      continue;
    }
    if (!merged.empty()) {
      RowDim &outer = merged.back();
      bool follows = true;
      for (size_t i = 0; i < d.step.size(); i++) {
        follows = follows && outer.step[i] == d.size * d.step[i];
      }
      if (follows) {
        outer = {outer.size * d.size, d.step};
        continue;
      }
    }
    merged.push_back(d);
  }
  if (merged.empty()) {
    merged.push_back({1, {}});
  }
  dims = std::move(merged);
}

inline int64_t count(const std::vector<RowDim> &dims) {
  int64_t n = 1;
  for (const RowDim &d : dims) {
    n *= d.size;
  }
  return n;
}

// Calls body(offsets, rows, steps) for the runs of equally spaced rows that cover
// [begin, end) of the rows that dims enumerate, last dimension fastest.
template <class Body>
void for_runs(const std::vector<RowDim> &dims, int64_t begin, int64_t end, const Body &body) {
  const RowDim &inner = dims.back();
  while (begin < end) {
    Steps offset{};
    int64_t rest = begin;
    for (auto d = dims.rbegin(); d != dims.rend(); ++d) {
      const int64_t i = rest % d->size;
      rest /= d->size;
      for (size_t t = 0; t < offset.size(); t++) {
        offset[t] += i * d->step[t];
      }
    }
    const int64_t rows = std::min(end - begin, inner.size - begin % inner.size);
    body(offset, rows, inner.step);
    begin += rows;
  }
}

}  // namespace invar
