// Package cudakernels tests the kernels of the CUDA target. Most of it needs no
// GPU: the same sources run on the host in an emulator that has fibers for
// threads (targets/cuda/conformance), and their bits are compared with a slow
// reference written from docs/contract-cuda.md. Where the compiler from the
// package index is there, they are compiled for real and the machine code is
// judged. Where a GPU is, the same cases run on it.
package cudakernels
