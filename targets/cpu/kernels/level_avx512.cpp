// The level "avx512": x86-64 with AVX-512 F, BW, DQ and VL.
#include "vec_avx512.h"

#include "level.h"
#include "mm.h"
#include "norm.h"

extern "C" const invar_level invar_level_avx512 = {"avx512", mm, pack, sum, softmax, norm};
