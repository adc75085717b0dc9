// Matrix products of float16.
#include "mm_mma.cuh"

INVAR_MMA_KERNELS(f16, F16)
