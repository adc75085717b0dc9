// Matrix products of bfloat16.
#include "mm_mma.cuh"

INVAR_MMA_KERNELS(bf16, BF16)
