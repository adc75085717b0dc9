// Tensors as this extension sees them: borrowed sizes and strides, a pointer, and
// the dtype in stage 1's numbering.
#pragma once

#include "error.h"
#include "small.h"

#include <cstdint>
#include <optional>
#include <torch/csrc/stable/tensor.h>
#include <vector>

namespace invar {

using torch::stable::Tensor;
using Sizes = Small<int64_t>;
using List = std::vector<int64_t>;  // an int[] as torch hands it over

// dtype of a View that stage 1 has no kernels for.
inline constexpr int32_t no_dtype = -1;

struct View {
  int64_t dim;
  const int64_t *sizes;    // borrowed from the tensor
  const int64_t *strides;  // in elements
  int32_t dtype;           // invar_cpu_dtype or no_dtype
  int32_t torch_dtype;     // aoti_torch_dtype_*()
};

View view(const Tensor &t);

// A tensor with its view, read once: each question to libtorch is a call.
struct Arg {
  explicit Arg(const Tensor &tensor) : t(&tensor), v(view(tensor)) {}
  const Tensor *t;  // borrowed
  View v;
};

// True for a strided tensor of the library's device (a CUDA one: the current) and of a
// dtype that stage 1 knows.
bool supported(const Arg &x);

const void *data(const Arg &x);
void *mutable_data(const Arg &x);

int64_t element_size(int32_t dtype);

// stage 1's number for torch's, and back.
int32_t stage1_dtype(int32_t torch_dtype);
int32_t torch_dtype(int32_t stage1_dtype);

// A fresh contiguous tensor on the library's device.
Tensor empty(const Sizes &sizes, int32_t torch_dtype);

// A fresh tensor for an elementwise result of t: its sizes, and its memory format
// where that is channels-last, else contiguous.
Tensor empty_like(const View &t);

// dim counted from the front; nullopt when out of range. A scalar counts as one
// dimension, as in torch.
std::optional<int64_t> wrap_dim(int64_t dim, int64_t ndim);

// "[2, 3]"
std::string shape_text(const View &v);

// For a message: "a: float32 [2, 3]".
std::string describe(const char *name, const View &v);

}  // namespace invar
