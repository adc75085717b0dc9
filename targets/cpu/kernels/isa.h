// Which levels there are and which one is in use.
#pragma once

#include "level.h"

// The level in use, or NULL when INVAR_CPU_ISA cannot be honoured.
__attribute__((visibility("hidden"))) const invar_level *invar_level_in_use();
