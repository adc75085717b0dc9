// The level "neon": aarch64.
#include "vec_neon.h"

#include "level.h"
#include "mm.h"
#include "norm.h"

extern "C" const invar_level invar_level_neon = {"neon", mm, pack, sum, softmax, norm};
