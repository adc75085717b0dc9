// The level "baseline": what every machine of the architecture runs.
#if defined(__x86_64__)
#include "vec_sse2.h"
#else
#include "vec_scalar.h"
#endif

#include "level.h"
#include "mm.h"
#include "norm.h"

extern "C" const invar_level invar_level_baseline = {"baseline", mm, pack, sum, softmax, norm};
