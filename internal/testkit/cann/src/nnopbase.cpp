// libnnopbase of the look-alike: making and freeing what aclnn takes.
#include "nnop.h"

extern "C" {
aclTensor *aclCreateTensor(const int64_t *dims, uint64_t count, aclDataType type, const int64_t *strides, int64_t offset,
                           aclFormat, const int64_t *, uint64_t, void *memory) {
  return new aclTensor{{dims, dims + count}, {strides, strides + count}, type, offset, static_cast<char *>(memory)};
}
aclScalar *aclCreateScalar(void *value, aclDataType type) {
  auto *scalar = new aclScalar{type, {}};
  memcpy(scalar->raw, value, width(type));
  return scalar;
}
aclIntArray *aclCreateIntArray(const int64_t *v, uint64_t n) { return new aclIntArray{{v, v + n}}; }
aclFloatArray *aclCreateFloatArray(const float *v, uint64_t n) { return new aclFloatArray{{v, v + n}}; }
aclBoolArray *aclCreateBoolArray(const bool *v, uint64_t n) { return new aclBoolArray{{v, v + n}}; }
aclTensorList *aclCreateTensorList(const aclTensor *const *v, uint64_t n) { return new aclTensorList{{v, v + n}}; }
aclScalarList *aclCreateScalarList(const aclScalar *const *v, uint64_t n) { return new aclScalarList{{v, v + n}}; }
#define DESTROY(kind) int aclDestroy##kind(const acl##kind *it) { delete it; return 0; }
DESTROY(Tensor) DESTROY(Scalar) DESTROY(IntArray) DESTROY(FloatArray) DESTROY(BoolArray) DESTROY(ScalarList)
int aclDestroyTensorList(const aclTensorList *list) {
  for (const aclTensor *t : list->values) delete t;
  delete list;
  return 0;
}
int aclGetViewShape(const aclTensor *t, int64_t **dims, uint64_t *count) {
  *count = t->dims.size();
  *dims = new int64_t[*count + 1];
  memcpy(*dims, t->dims.data(), *count * sizeof(int64_t));
  return 0;
}
int aclGetDataType(const aclTensor *t, aclDataType *type) {
  *type = t->type;
  return 0;
}
}
