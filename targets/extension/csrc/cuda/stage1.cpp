#include "stage1.h"

#include <atomic>
#include <dlfcn.h>
#include <memory>
#include <mutex>

namespace invar {
namespace {

std::mutex attach_lock;
std::unique_ptr<Stage1> attached;
std::atomic<const Stage1 *> current{nullptr};

template <class Function>
void resolve(void *library, const std::string &path, const char *name, Function &into) {
  void *symbol = dlsym(library, name);
  if (symbol == nullptr) {
    fail("CUDA stage 1 library ", path, " does not export ", name);
  }
  into = reinterpret_cast<Function>(symbol);
}

}  // namespace

std::string torch_error() {
  // Newer than the ABI that this library is built for, so looked up by name.
  using What = const char *(*)();
  static const auto what = reinterpret_cast<What>(
      dlsym(RTLD_DEFAULT, "torch_exception_get_what_without_backtrace"));
  const char *text = what != nullptr ? what() : nullptr;
  return text != nullptr && *text != '\0' ? text : "libtorch reports an error";
}

void attach(const std::string &path) {
  const std::lock_guard<std::mutex> hold(attach_lock);
  if (attached != nullptr) {
    if (attached->path != path) {
      fail("CUDA stage 1 library ", attached->path, " is in use in this process; ", path,
           " cannot take its place");
    }
    return;
  }
  void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    fail("CUDA stage 1 library cannot be loaded: ", dlerror());
  }
  auto next = std::make_unique<Stage1>();
  next->path = path;
#define INVAR_RESOLVE(name) resolve(library, path, "invar_cuda_" #name, next->name)
  INVAR_RESOLVE(abi_version);
  if (next->abi_version() != expected_abi) {
    fail("CUDA stage 1 library ", path, " has ABI ", next->abi_version(), ", expected ABI ",
         expected_abi);
  }
  INVAR_RESOLVE(contract);
  if (std::string(next->contract()) != expected_contract) {
    fail("CUDA stage 1 library ", path, " keeps contract ", next->contract(), ", expected ",
         expected_contract);
  }
  INVAR_RESOLVE(version);
  INVAR_RESOLVE(arches);
  INVAR_RESOLVE(status_text);
  INVAR_RESOLVE(prepare);
  INVAR_RESOLVE(mm_workspace);
  INVAR_RESOLVE(mm);
  INVAR_RESOLVE(pack);
  INVAR_RESOLVE(row_workspace);
  INVAR_RESOLVE(sum);
  INVAR_RESOLVE(mean);
  INVAR_RESOLVE(softmax);
  INVAR_RESOLVE(log_softmax);
  INVAR_RESOLVE(rms_norm);
  INVAR_RESOLVE(add_rms_norm);
  INVAR_RESOLVE(control_mm);
#undef INVAR_RESOLVE
  attached = std::move(next);
  current.store(attached.get(), std::memory_order_release);
}

const Stage1 &stage1() {
  const Stage1 *library = current.load(std::memory_order_acquire);
  if (library == nullptr) [[unlikely]] {
    fail("no CUDA stage 1 library is attached; `import batch_invariant_ops` attaches it");
  }
  return *library;
}

void stage1_ok(int32_t status, const char *op) {
  if (status == INVAR_CUDA_OK) [[likely]] {
    return;
  }
  if (status == INVAR_CUDA_NO_KERNEL) {
    fail(op, ": ", stage1().status_text(status), "; it holds ", stage1().arches(),
         ". Run `invar build cuda --arch` with this device's");
  }
  fail(op, ": ", stage1().status_text(status));
}

}  // namespace invar
