// Memory for the kernels of one call, from torch's caching allocator. It goes back when
// the call returns; whoever gets it next on this stream runs after these kernels.
#pragma once

#include "../tensor.h"

#include <invar_cpu.h>

namespace invar {

class Workspace {
 public:
  explicit Workspace(int64_t bytes) : bytes_(bytes) {
    if (bytes > 0) {
      memory_ = empty({(bytes + 3) / 4}, torch_dtype(INVAR_CPU_FLOAT32));
    }
  }
  void *data() const { return memory_ ? mutable_data(Arg(*memory_)) : nullptr; }
  int64_t bytes() const { return bytes_; }

 private:
  int64_t bytes_;
  std::optional<Tensor> memory_;
};

}  // namespace invar
