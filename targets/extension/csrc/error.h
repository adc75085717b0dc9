// Errors of the extension. torch turns a std::runtime_error into Python's
// RuntimeError with this text and nothing else around it.
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>

#include <torch/csrc/inductor/aoti_torch/c/shim.h>

namespace invar {

template <class... Parts>
[[noreturn]] void fail(const Parts &...parts) {
  std::ostringstream text;
  (text << ... << parts);
  throw std::runtime_error(text.str());
}

// The text of the last error that libtorch caught in this thread; only torch
// 2.13 and later hand it out.
std::string torch_error();

inline void torch_ok(AOTITorchError code, const char *what) {
  if (code != 0) [[unlikely]] {
    fail(what, ": ", torch_error());
  }
}

}  // namespace invar
