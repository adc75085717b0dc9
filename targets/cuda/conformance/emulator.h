// The switches of the emulator.
#pragma once

#include "emulate.h"

namespace invar::emulated {

// thread_order: 0 ascending, 1 descending (blocks too), else the seed of a shuffle.
void configure(int thread_order, bool copies_late, Product model);

}  // namespace invar::emulated
