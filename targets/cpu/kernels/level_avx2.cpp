// The level "avx2": x86-64 with AVX2, FMA and F16C.
#include "vec_avx2.h"

#include "level.h"
#include "mm.h"
#include "norm.h"

extern "C" const invar_level invar_level_avx2 = {"avx2", mm, pack, sum, softmax, norm};
