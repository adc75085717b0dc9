#include "../device.h"

#if !defined(INVAR_OPS_EMULATED)

namespace invar {

int32_t current_device() {
  int32_t index = 0;
  torch_ok(aoti_torch_get_current_device_index(&index), "ask for the current device");
  return index;
}

bool on_current_device(const Tensor &t) {
  int32_t index = 0;
  torch_ok(aoti_torch_get_device_index(t.get(), &index), "read a tensor");
  return index == current_device();
}

void *current_stream() {
  void *stream = nullptr;
  torch_ok(aoti_torch_get_current_cuda_stream(current_device(), &stream),
           "ask for the current stream");
  return stream;
}

}  // namespace invar

#endif
