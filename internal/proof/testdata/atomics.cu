// Kernels that a proof must catch (bad_) and must let through (ok_). internal/sass/testdata
// holds what nvdisasm prints of them.
#include <cuda_fp16.h>
#include <cuda_bf16.h>
extern "C" __global__ void bad_f32(const float *x, float *y) { atomicAdd(y, x[threadIdx.x]); }
extern "C" __global__ void bad_ret(const float *x, float *y) { y[1+threadIdx.x] = atomicAdd(y, x[threadIdx.x]); }
extern "C" __global__ void bad_f64(const double *x, double *y) { atomicAdd(y, x[threadIdx.x]); }
extern "C" __global__ void bad_h2(const __half2 *x, __half2 *y) { atomicAdd(y, x[threadIdx.x]); }
extern "C" __global__ void bad_bf(const __nv_bfloat16 *x, __nv_bfloat16 *y) { atomicAdd(y, x[threadIdx.x]); }
extern "C" __global__ void bad_cas(const float *x, int *y) { int o = *y, a; do { a = o; o = atomicCAS(y, a, __float_as_int(__int_as_float(a) + x[threadIdx.x])); } while (a != o); }
extern "C" __global__ void ok_int(int *y) { atomicAdd(y, 3); }
extern "C" __global__ void ok_intret(int *y) { y[threadIdx.x+1] = atomicAdd(y, threadIdx.x); }
extern "C" __global__ void bad_shared(const float *x, float *y) { __shared__ float s; if (threadIdx.x==0) s=0; __syncthreads(); atomicAdd(&s, x[threadIdx.x]); __syncthreads(); y[0]=s; }
extern "C" __global__ void bad_vec(const float4 *x, float4 *y) {
#if __CUDA_ARCH__ >= 900
 atomicAdd(y, x[threadIdx.x]);
#endif
}
extern "C" __global__ void bad_max(const float *x, unsigned *y) { atomicMax(y, __float_as_uint(x[threadIdx.x])); }
