#include <cuda_bf16.h>
extern "C" __global__ void invar_test_sum(const float *x, float *y, int n) {
  float s = 0; for (int i = 0; i < n; ++i) s += x[threadIdx.x * n + i]; y[threadIdx.x] = s;
}
extern "C" __global__ void invar_test_bf(const __nv_bfloat16 *x, float *y) { __shared__ float t[256]; t[threadIdx.x] = __bfloat162float(x[threadIdx.x]); __syncthreads(); y[threadIdx.x] = t[255 - threadIdx.x]; }
