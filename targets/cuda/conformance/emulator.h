// The switches of the emulator.
#pragma once

#include "emulate.h"

namespace invar::emulated {

// thread_order: 0 all threads in turn; 1 each warp as far as it comes alone, the last one
// (and the last block) first; else the seed of a shuffle.
void configure(int thread_order, bool copies_late, Product model);

}  // namespace invar::emulated
