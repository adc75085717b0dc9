// The end of a row: fewer elements than a vector holds.
#pragma once

#include "half.h"

namespace {

#if !defined(__AVX512F__)  // which has instructions for it
// n < VL elements, the other lanes filled up
inline vf load_some(const float_any *p, int64_t n, float fill) {
  alignas(64) float t[VL];
  for (int j = 0; j < VL; j++) t[j] = j < n ? p[j] : fill;
  return load(t);
}
inline void store_some(float_any *p, int64_t n, vf v) {
  alignas(64) float t[VL];
  store(t, v);
  for (int j = 0; j < n; j++) p[j] = t[j];
}
#endif

}  // namespace
