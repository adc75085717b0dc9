// What is behind the opaque types of aclnn in the look-alike: tensors with
// strides in host memory, and an executor that is a closure.
#pragma once
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>

#define ACL_FUNC_VISIBILITY __attribute__((visibility("default")))
#include "acl/acl.h"

using Shape = std::vector<int64_t>;

struct aclTensor {
  Shape dims, strides;
  aclDataType type;
  int64_t offset;
  char *memory;
};
struct aclScalar {
  aclDataType type;
  char raw[16];
};
struct aclIntArray { std::vector<int64_t> values; };
struct aclFloatArray { std::vector<float> values; };
struct aclBoolArray { std::vector<char> values; };
struct aclTensorList { std::vector<const aclTensor *> values; };
struct aclScalarList { std::vector<const aclScalar *> values; };
struct aclOpExecutor { std::function<void()> run; };
using aclnnStatus = int;

// The code of CANN for a null pointer among the arguments.
constexpr aclnnStatus kNullPointer = 161001;

inline size_t width(aclDataType type) {
  switch (type) {
    case ACL_FLOAT: case ACL_INT32: case ACL_UINT32: return 4;
    case ACL_FLOAT16: case ACL_BF16: case ACL_INT16: return 2;
    case ACL_INT64: case ACL_DOUBLE: case ACL_UINT64: return 8;
    default: return 1;
  }
}

template <typename T> T from_bits(const void *at) { T value; memcpy(&value, at, sizeof value); return value; }
template <typename T, typename V> void to_bits(void *at, V value) { T typed = static_cast<T>(value); memcpy(at, &typed, sizeof typed); }

// half and bfloat16 in integers: g++ 12 has no half type for every machine.
inline float half_to_float(uint16_t h) {
  uint32_t sign = uint32_t(h & 0x8000) << 16, exponent = (h >> 10) & 31, mantissa = h & 0x3ff, bits;
  if (exponent == 0) {
    float small = static_cast<float>(mantissa) * 0x1p-24f;
    return sign ? -small : small;
  }
  bits = exponent == 31 ? 0x7f800000u | mantissa << 13 : (exponent + 112) << 23 | mantissa << 13;
  bits |= sign;
  return from_bits<float>(&bits);
}
inline uint16_t float_to_half(float f) {
  uint32_t bits = from_bits<uint32_t>(&f), sign = (bits >> 16) & 0x8000, magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return uint16_t(sign | 0x7e00);
  if (magnitude >= 0x477ff000) return uint16_t(sign | 0x7c00);  // 65520 and above round to infinity
  if (magnitude < 0x38800000) {                                 // subnormal: a multiple of 2^-24
    float scaled = from_bits<float>(&magnitude) * 0x1p24f;
    uint32_t whole = static_cast<uint32_t>(scaled);
    float rest = scaled - static_cast<float>(whole);
    if (rest > 0.5f || (rest == 0.5f && (whole & 1))) whole++;
    return uint16_t(sign | whole);
  }
  uint32_t rounded = magnitude + 0xfff + ((magnitude >> 13) & 1);
  return uint16_t(sign | ((rounded - 0x38000000) >> 13));
}
inline uint16_t float_to_bfloat(float f) {
  uint32_t bits = from_bits<uint32_t>(&f);
  if ((bits & 0x7fffffff) > 0x7f800000) return uint16_t(bits >> 16 | 0x40);
  return uint16_t((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}
inline float bfloat_to_float(uint16_t b) { uint32_t bits = uint32_t(b) << 16; return from_bits<float>(&bits); }

[[noreturn]] inline void unknown(aclDataType type) {
  fprintf(stderr, "look-alike CANN: data type %d is not simulated\n", static_cast<int>(type));
  abort();
}

inline double load(const void *at, aclDataType type) {
  switch (type) {
    case ACL_FLOAT: return from_bits<float>(at);
    case ACL_DOUBLE: return from_bits<double>(at);
    case ACL_FLOAT16: return half_to_float(from_bits<uint16_t>(at));
    case ACL_BF16: return bfloat_to_float(from_bits<uint16_t>(at));
    case ACL_INT64: return static_cast<double>(from_bits<int64_t>(at));
    case ACL_INT32: return from_bits<int32_t>(at);
    case ACL_INT16: return from_bits<int16_t>(at);
    case ACL_INT8: return from_bits<int8_t>(at);
    case ACL_BOOL: case ACL_UINT8: return from_bits<uint8_t>(at);
    default: unknown(type);
  }
}

inline void store(void *at, aclDataType type, double value) {
  switch (type) {
    case ACL_FLOAT: return to_bits<float>(at, value);
    case ACL_DOUBLE: return to_bits<double>(at, value);
    case ACL_FLOAT16: return to_bits<uint16_t>(at, float_to_half(static_cast<float>(value)));
    case ACL_BF16: return to_bits<uint16_t>(at, float_to_bfloat(static_cast<float>(value)));
    case ACL_INT64: return to_bits<int64_t>(at, value);
    case ACL_INT32: return to_bits<int32_t>(at, value);
    case ACL_INT16: return to_bits<int16_t>(at, value);
    case ACL_INT8: return to_bits<int8_t>(at, value);
    case ACL_BOOL: return to_bits<uint8_t>(at, value != 0);
    case ACL_UINT8: return to_bits<uint8_t>(at, value);
    default: unknown(type);
  }
}

inline int64_t elements(const Shape &shape) {
  int64_t n = 1;
  for (int64_t d : shape) n *= d;
  return n;
}

// The address of element i of shape in t, which may be broadcast to it.
inline char *address(const aclTensor *t, int64_t i, const Shape &shape) {
  int64_t at = t->offset, lead = static_cast<int64_t>(shape.size() - t->dims.size());
  for (int64_t k = static_cast<int64_t>(shape.size()) - 1; k >= 0; k--) {
    int64_t index = i % shape[k];
    i /= shape[k];
    if (k >= lead && t->dims[k - lead] != 1) at += index * t->strides[k - lead];
  }
  return t->memory + at * static_cast<int64_t>(width(t->type));
}
inline double get(const aclTensor *t, int64_t i, const Shape &shape) { return load(address(t, i, shape), t->type); }
inline double get(const aclTensor *t, int64_t i) { return get(t, i, t->dims); }
inline void put(aclTensor *t, int64_t i, double value) { store(address(t, i, t->dims), t->type, value); }
inline double value(const aclScalar *s) { return load(s->raw, s->type); }

// All elements in order, as float: what the kernels compute with.
inline std::vector<float> floats(const aclTensor *t) {
  std::vector<float> out(static_cast<size_t>(elements(t->dims)));
  for (size_t i = 0; i < out.size(); i++) out[i] = static_cast<float>(get(t, static_cast<int64_t>(i)));
  return out;
}

#define EXPORTED extern "C" __attribute__((visibility("default")))

// OPERATOR(name, workspace, (parameters)) { body }: both functions of an aclnn
// operator. The launch refuses a null executor: EXEC_NPU_CMD_EXT launches
// whatever GetWorkspaceSize said.
#define OPERATOR(name, workspace, parameters, arguments)                                                \
  static void name##Body parameters;                                                                  \
  EXPORTED aclnnStatus name(void *, uint64_t, aclOpExecutor *executor, aclrtStream) {                   \
    if (!executor) return kNullPointer;                                                                 \
    executor->run();                                                                                    \
    delete executor;                                                                                    \
    return 0;                                                                                           \
  }                                                                                                     \
  EXPORTED aclnnStatus name##GetWorkspaceSize(EXPAND parameters, uint64_t *workspace_bytes, aclOpExecutor **made) { \
    if (const char *code = getenv("LOOKALIKE_FAIL_" #name)) return atoi(code);                          \
    *workspace_bytes = workspace;                                                                                 \
    *made = new aclOpExecutor{[=] { name##Body arguments; }};                                             \
    return 0;                                                                                           \
  }                                                                                                     \
  static void name##Body parameters
#define EXPAND(...) __VA_ARGS__
