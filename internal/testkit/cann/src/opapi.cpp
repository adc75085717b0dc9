// libopapi of the look-alike: the built-in operators that tests and the probe
// use. aclnnMm splits its reduction by the number of rows, as tuned kernels do,
// and so is not batch invariant: what the custom operators are there to repair.
#include <cmath>

#include "nnop.h"

#define BINARY(name, expression)                                                                                   \
  OPERATOR(aclnn##name, 0, (const aclTensor *a, const aclTensor *b, aclTensor *out), (a, b, out)) {                  \
    for (int64_t i = 0; i < elements(out->dims); i++) {                                                            \
      double x = get(a, i, out->dims), y = get(b, i, out->dims);                                                   \
      put(out, i, expression);                                                                                     \
    }                                                                                                              \
  }
#define UNARY(name, expression)                                                                                    \
  OPERATOR(aclnn##name, 0, (const aclTensor *a, aclTensor *out), (a, out)) {                                         \
    for (int64_t i = 0; i < elements(out->dims); i++) {                                                            \
      double x = get(a, i, out->dims);                                                                             \
      put(out, i, expression);                                                                                     \
    }                                                                                                              \
  }
BINARY(Mul, x *y)
BINARY(Div, x / y)
BINARY(EqTensor, x == y)
UNARY(Relu, x > 0 ? x : 0)
UNARY(Neg, -x)
UNARY(Abs, std::fabs(x))

OPERATOR(aclnnAdd, 0, (const aclTensor *a, const aclTensor *b, const aclScalar *alpha, aclTensor *out), (a, b, alpha, out)) {
  for (int64_t i = 0; i < elements(out->dims); i++) put(out, i, get(a, i, out->dims) + value(alpha) * get(b, i, out->dims));
}
OPERATOR(aclnnAdds, 0, (const aclTensor *a, const aclScalar *b, const aclScalar *alpha, aclTensor *out), (a, b, alpha, out)) {
  for (int64_t i = 0; i < elements(out->dims); i++) put(out, i, get(a, i, out->dims) + value(alpha) * value(b));
}
OPERATOR(aclnnMuls, 0, (const aclTensor *a, const aclScalar *b, aclTensor *out), (a, b, out)) {
  for (int64_t i = 0; i < elements(out->dims); i++) put(out, i, get(a, i, out->dims) * value(b));
}
OPERATOR(aclnnInplaceCopy, 0, (aclTensor *to, const aclTensor *from), (to, from)) {
  for (int64_t i = 0; i < elements(to->dims); i++) put(to, i, get(from, i, to->dims));
}
OPERATOR(aclnnCast, 0, (const aclTensor *from, aclDataType type, aclTensor *to), (from, type, to)) {
  (void)type;  // that of the result
  for (int64_t i = 0; i < elements(to->dims); i++) put(to, i, get(from, i, to->dims));
}
OPERATOR(aclnnInplaceFillScalar, 0, (aclTensor *to, const aclScalar *with), (to, with)) {
  for (int64_t i = 0; i < elements(to->dims); i++) put(to, i, value(with));
}
OPERATOR(aclnnInplaceOne, 0, (aclTensor *to), (to)) {
  for (int64_t i = 0; i < elements(to->dims); i++) put(to, i, 1);
}
OPERATOR(aclnnInplaceZero, 0, (aclTensor *to), (to)) {
  for (int64_t i = 0; i < elements(to->dims); i++) put(to, i, 0);
}

static void tuned(const aclTensor *a, const aclTensor *b, aclTensor *out) {
  int64_t rows = a->dims[0], inner = a->dims[1], columns = b->dims[1];
  std::vector<float> x = floats(a), y = floats(b);
  int64_t parts = rows < 16 ? 4 : 1;  // few rows: the reduction is split to fill the cores
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
OPERATOR(aclnnMm, 64, (const aclTensor *a, const aclTensor *b, aclTensor *out, int8_t mode), (a, b, out, mode)) {
  (void)mode;
  tuned(a, b, out);
}
OPERATOR(aclnnMatmul, 64, (const aclTensor *a, const aclTensor *b, aclTensor *out, int8_t mode), (a, b, out, mode)) {
  (void)mode;
  tuned(a, b, out);
}

EXPORTED int InitHugeMemThreadLocal(void *, bool) { return 0; }
EXPORTED void UnInitHugeMemThreadLocal(void *, bool) {}
EXPORTED void ReleaseHugeMem(void *, bool) {}
