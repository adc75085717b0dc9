#include "tensor.h"

#include "device.h"

#include <torch/csrc/stable/c/shim.h>

namespace invar {
namespace {

// libtorch's numbers for the dtypes, asked once.
const int32_t torch_float32 = aoti_torch_dtype_float32();
const int32_t torch_bfloat16 = aoti_torch_dtype_bfloat16();
const int32_t torch_float16 = aoti_torch_dtype_float16();
const int32_t device = INVAR_DEVICE_TYPE();
const int32_t layout_strided = aoti_torch_layout_strided();

Tensor empty_strided(int64_t dim, const int64_t *sizes, const int64_t *strides, int32_t dtype) {
  AtenTensorHandle handle = nullptr;
  torch_ok(aoti_torch_empty_strided(dim, sizes, strides, dtype, device, current_device(), &handle),
           "allocate a tensor");
  return Tensor(handle);
}

Sizes contiguous_strides(int64_t dim, const int64_t *sizes) {
  Sizes strides(static_cast<size_t>(dim));
  int64_t step = 1;
  for (int64_t i = dim - 1; i >= 0; i--) {
    strides[static_cast<size_t>(i)] = step;
    step *= sizes[i] > 1 ? sizes[i] : 1;
  }
  return strides;
}

// Strides of torch.channels_last (4 dimensions) or channels_last_3d (5).
Sizes channels_last_strides(int64_t dim, const int64_t *sizes) {
  Sizes strides(static_cast<size_t>(dim));
  int64_t step = 1;
  strides[1] = step;
  step *= sizes[1];
  for (int64_t i = dim - 1; i >= 2; i--) {
    strides[static_cast<size_t>(i)] = step;
    step *= sizes[i];
  }
  strides[0] = step;
  return strides;
}

bool same_layout(const View &v, const Sizes &strides) {
  for (int64_t i = 0; i < v.dim; i++) {
    if (v.sizes[i] != 1 && v.strides[i] != strides[static_cast<size_t>(i)]) {
      return false;
    }
  }
  return true;
}

}  // namespace

View view(const Tensor &t) {
  View v{};
  int64_t *sizes = nullptr;
  int64_t *strides = nullptr;
  torch_ok(aoti_torch_get_dim(t.get(), &v.dim), "read a tensor");
  torch_ok(aoti_torch_get_sizes(t.get(), &sizes), "read a tensor");
  torch_ok(aoti_torch_get_strides(t.get(), &strides), "read a tensor");
  torch_ok(aoti_torch_get_dtype(t.get(), &v.torch_dtype), "read a tensor");
  v.sizes = sizes;
  v.strides = strides;
  v.dtype = stage1_dtype(v.torch_dtype);
  return v;
}

bool supported(const Arg &x) {
  if (x.v.dtype == no_dtype) {
    return false;
  }
  int32_t type = 0;
  int32_t layout = 0;
  torch_ok(aoti_torch_get_device_type(x.t->get(), &type), "read a tensor");
  torch_ok(aoti_torch_get_layout(x.t->get(), &layout), "read a tensor");
  return type == device && layout == layout_strided && on_current_device(*x.t);
}

const void *data(const Arg &x) {
  const void *p = nullptr;
  torch_ok(torch_get_const_data_ptr(x.t->get(), &p), "read a tensor's memory");
  return p;
}

void *mutable_data(const Arg &x) {
  void *p = nullptr;
  torch_ok(torch_get_mutable_data_ptr(x.t->get(), &p), "write a tensor's memory");
  return p;
}

int64_t element_size(int32_t dtype) { return dtype == INVAR_CPU_FLOAT32 ? 4 : 2; }

int32_t stage1_dtype(int32_t dtype) {
  if (dtype == torch_float32) {
    return INVAR_CPU_FLOAT32;
  }
  if (dtype == torch_bfloat16) {
    return INVAR_CPU_BFLOAT16;
  }
  return dtype == torch_float16 ? INVAR_CPU_FLOAT16 : no_dtype;
}

int32_t torch_dtype(int32_t dtype) {
  switch (dtype) {
    case INVAR_CPU_FLOAT32: return torch_float32;
    case INVAR_CPU_BFLOAT16: return torch_bfloat16;
    case INVAR_CPU_FLOAT16: return torch_float16;
    default: fail("no torch dtype for stage 1 dtype ", dtype);
  }
}

Tensor empty(const Sizes &sizes, int32_t dtype) {
  const auto dim = static_cast<int64_t>(sizes.size());
  const Sizes strides = contiguous_strides(dim, sizes.data());
  return empty_strided(dim, sizes.data(), strides.data(), dtype);
}

Tensor empty_like(const View &v) {
  Sizes strides = contiguous_strides(v.dim, v.sizes);
  if ((v.dim == 4 || v.dim == 5) && !same_layout(v, strides)) {
    Sizes last = channels_last_strides(v.dim, v.sizes);
    if (same_layout(v, last)) {
      strides = std::move(last);
    }
  }
  return empty_strided(v.dim, v.sizes, strides.data(), v.torch_dtype);
}

std::optional<int64_t> wrap_dim(int64_t dim, int64_t ndim) {
  const int64_t n = ndim > 0 ? ndim : 1;
  if (dim < -n || dim >= n) {
    return std::nullopt;
  }
  return dim < 0 ? dim + n : dim;
}

std::string shape_text(const View &v) {
  std::ostringstream text;
  text << '[';
  for (int64_t i = 0; i < v.dim; i++) {
    text << (i > 0 ? ", " : "") << v.sizes[i];
  }
  text << ']';
  return text.str();
}

std::string describe(const char *name, const View &v) {
  const char *dtype = "a dtype without a kernel";
  switch (v.dtype) {
    case INVAR_CPU_FLOAT32: dtype = "float32"; break;
    case INVAR_CPU_BFLOAT16: dtype = "bfloat16"; break;
    case INVAR_CPU_FLOAT16: dtype = "float16"; break;
    default: break;
  }
  return std::string(name) + ": " + dtype + " " + shape_text(v);
}

}  // namespace invar
