// How the C functions for the Python package are declared, and how they turn an
// exception into a text.
#pragma once

#include "device.h"

#include <cstring>
#include <exception>

#define INVAR_OPS_API extern "C" __attribute__((visibility("default")))

namespace invar {

template <class Body>
int32_t guarded(char *error, int64_t size, const Body &body) {
  try {
    body();
    return 0;
  } catch (const std::exception &e) {
    if (error != nullptr && size > 0) {
      std::strncpy(error, e.what(), static_cast<size_t>(size - 1));
      error[size - 1] = '\0';
    }
    return 1;
  }
}

}  // namespace invar
