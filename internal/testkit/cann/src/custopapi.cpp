// libcust_opapi of the look-alike's run packages, computing on the CPU.
// BATCH_DEPENDENT: the reduction of mm is split by the number of rows.
// NO_REDUCE_MEAN: one operator of the list is missing.
// BUILTINS: it exports a name of CANN's own, and so takes that operator over.
#include <cmath>
#include <limits>

#include "nnop.h"

extern "C" __attribute__((visibility("default"), used)) const char *lookAlikeVendor(void) { return VENDOR; }

namespace {

// One reduction in a fixed order per element, whatever the batch is.
void multiply(const aclTensor *a, const aclTensor *b, aclTensor *out) {
  size_t last = a->dims.size() - 1;
  int64_t inner = a->dims[last], rows = elements(a->dims) / (inner ? inner : 1), columns = b->dims[b->dims.size() - 1];
  std::vector<float> x = floats(a), y = floats(b);
#ifdef BATCH_DEPENDENT
  int64_t parts = rows < 16 ? 4 : 1;
#else
  int64_t parts = 1;
#endif
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < columns; j++) {
      float sum = 0;
      for (int64_t part = 0; part < parts; part++) {
        float one = 0;
        for (int64_t k = inner * part / parts; k < inner * (part + 1) / parts; k++) one += x[i * inner + k] * y[k * columns + j];
        sum += one;
      }
      put(out, i * columns + j, sum);
    }
}

// Calls each for every line along dim: its first index in a flat tensor, the
// stride of its elements, its length and its number among the lines.
template <typename F>
void lines(const Shape &dims, int64_t dim, F each) {
  if (dim < 0) dim += static_cast<int64_t>(dims.size());
  int64_t outer = 1, inner = 1;
  for (int64_t k = 0; k < static_cast<int64_t>(dims.size()); k++) (k < dim ? outer : inner) *= k == dim ? 1 : dims[k];
  for (int64_t o = 0; o < outer; o++)
    for (int64_t i = 0; i < inner; i++) each(o * dims[dim] * inner + i, inner, dims[dim], o * inner + i);
}

void reduce(const aclTensor *x, const aclIntArray *dims, aclTensor *out, bool mean) {
  std::vector<float> v = floats(x);
  lines(x->dims, dims->values[0], [&](int64_t first, int64_t stride, int64_t length, int64_t line) {
    float sum = 0;
    for (int64_t k = 0; k < length; k++) sum += v[first + k * stride];
    put(out, line, mean ? sum / static_cast<float>(length) : sum);
  });
}

}  // namespace

OPERATOR(aclnnMmBatchInvariant, 1024, (const aclTensor *a, const aclTensor *b, aclTensor *out), (a, b, out)) { multiply(a, b, out); }
OPERATOR(aclnnMatmulBatchInvariant, 1024, (const aclTensor *a, const aclTensor *b, aclTensor *out), (a, b, out)) { multiply(a, b, out); }

OPERATOR(aclnnReduceSumBatchInvariant, 0, (const aclTensor *x, const aclIntArray *dims, bool keep, aclTensor *out), (x, dims, keep, out)) {
  (void)keep;
  reduce(x, dims, out, false);
}
#ifndef NO_REDUCE_MEAN
OPERATOR(aclnnReduceMeanBatchInvariant, 0, (const aclTensor *x, const aclIntArray *dims, bool keep, aclTensor *out), (x, dims, keep, out)) {
  (void)keep;
  reduce(x, dims, out, true);
}
#endif
OPERATOR(aclnnLogSoftmaxBatchInvariant, 0, (const aclTensor *x, int64_t dim, aclTensor *out), (x, dim, out)) {
  std::vector<float> v = floats(x);
  lines(x->dims, dim, [&](int64_t first, int64_t stride, int64_t length, int64_t) {
    float most = -std::numeric_limits<float>::infinity(), sum = 0;
    for (int64_t k = 0; k < length; k++) most = std::fmax(most, v[first + k * stride]);
    for (int64_t k = 0; k < length; k++) sum += std::exp(v[first + k * stride] - most);
    for (int64_t k = 0; k < length; k++) put(out, first + k * stride, v[first + k * stride] - most - std::log(sum));
  });
}

// Attention in the layout BSH without mask: query [b, s, heads * d], key and
// value [b, t, kv heads * d].
OPERATOR(aclnnFusedInferAttentionScoreBatchInvariantV3, 4096,
         (const aclTensor *query, const aclTensor *key, const aclTensor *val, int64_t heads, int64_t kv_heads, double scale, aclTensor *out),
         (query, key, val, heads, kv_heads, scale, out)) {
  if (kv_heads == 0) kv_heads = heads;
  std::vector<float> q = floats(query), k = floats(key), v = floats(val);
  int64_t batch = query->dims[0], steps = query->dims[1], wide = query->dims[2], seen = key->dims[1], narrow = key->dims[2];
  int64_t size = wide / heads, group = heads / kv_heads;
  std::vector<float> weight(static_cast<size_t>(seen));
  for (int64_t b = 0; b < batch; b++)
    for (int64_t s = 0; s < steps; s++)
      for (int64_t h = 0; h < heads; h++) {
        const float *row = &q[(b * steps + s) * wide + h * size];
        float most = -std::numeric_limits<float>::infinity(), sum = 0;
        for (int64_t t = 0; t < seen; t++) {
          const float *other = &k[(b * seen + t) * narrow + h / group * size];
          float dot = 0;
          for (int64_t i = 0; i < size; i++) dot += row[i] * other[i];
          weight[t] = dot * static_cast<float>(scale);
          most = std::fmax(most, weight[t]);
        }
        for (float &w : weight) sum += w = std::exp(w - most);
        for (int64_t i = 0; i < size; i++) {
          float total = 0;
          for (int64_t t = 0; t < seen; t++) total += weight[t] * v[(b * seen + t) * narrow + h / group * size + i];
          put(out, (b * steps + s) * wide + h * size + i, total / sum);
        }
      }
}

#ifdef BUILTINS
// Takes x + 1 over; the wrong result shows that it was this one.
OPERATOR(aclnnAdds, 0, (const aclTensor *a, const aclScalar *b, const aclScalar *alpha, aclTensor *out), (a, b, alpha, out)) {
  (void)a, (void)b, (void)alpha;
  for (int64_t i = 0; i < elements(out->dims); i++) put(out, i, 42);
}
#endif
