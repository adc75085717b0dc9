// Kernels with one fault each, of the kinds that compute-sanitizer's tools are for: the
// controls without which a clean report of the operators would mean nothing.
//
//   faults memcheck|racecheck|initcheck|synccheck|none
//
// Exit codes: 0 the kernel was run, whatever it did; 1 CUDA says that it was not; 2 usage.
#include <cuda_runtime.h>
#include <stdio.h>
#include <string.h>

namespace {

constexpr int kThreads = 64;  // two warps

// Writes behind the end.
__global__ void memcheck(int *to, const int *) { to[threadIdx.x + 1] = 1; }

// The second warp may read before the first has written.
__global__ void racecheck(int *to, const int *) {
  __shared__ int seen;
  if (threadIdx.x == 0) seen = 1;
  to[threadIdx.x] = seen;
}

// Reads what nobody wrote.
__global__ void initcheck(int *to, const int *from) { to[threadIdx.x] = from[threadIdx.x]; }

// A barrier that half a warp never comes to.
__global__ void synccheck(int *to, const int *) {
  if (threadIdx.x < 16) __syncthreads();
  to[threadIdx.x] = 1;
}

__global__ void none(int *to, const int *) { to[threadIdx.x] = 1; }

bool bad(cudaError_t e) {
  if (e == cudaSuccess) return false;
  fprintf(stderr, "faults: CUDA: %s\n", cudaGetErrorString(e));
  return true;
}

struct Fault {
  const char *name;
  void (*kernel)(int *, const int *);
};
const Fault faults[] = {{"memcheck", memcheck},
                        {"racecheck", racecheck},
                        {"initcheck", initcheck},
                        {"synccheck", synccheck},
                        {"none", none}};

int run(const Fault &f) {
  int *to = nullptr, *from = nullptr;
  if (bad(cudaMalloc(&to, kThreads * sizeof *to))) return 1;
  if (bad(cudaMalloc(&from, kThreads * sizeof *from))) return 1;
  f.kernel<<<1, kThreads>>>(to, from);
  return bad(cudaGetLastError()) || bad(cudaDeviceSynchronize());
}

}  // namespace

int main(int argc, char **argv) {
  for (const Fault &f : faults) {
    if (argc == 2 && !strcmp(argv[1], f.name)) return run(f);
  }
  fprintf(stderr, "usage: faults memcheck|racecheck|initcheck|synccheck|none\n");
  return 2;
}
