// What the host gives a kernel: one structure by value. Plain data, seen alike by
// nvcc, by the host compiler and by the emulator of the conformance tests.
#pragma once

#include "invar_cuda.h"

namespace invar {

// docs/contract-cuda.md, "Rows".
constexpr int kRowThreads = 256;              // threads that share a row
constexpr int kRun = 8;                       // neighbours that one thread takes
constexpr int kLanes = kRowThreads * kRun;    // 2048
constexpr int64_t kSegment = 16384;           // elements summed in one set of lanes
constexpr int kWarpRows = kRowThreads / 32;   // rows of a block where each warp has its own

// docs/contract-cuda.md, "Matrix products".
constexpr int kStep = 64;          // k is padded with zeros to a multiple of it (mma)
constexpr int64_t kChunk = 512;    // shortest chunk of k
constexpr int64_t kMostChunks = 16;

// Shared memory of a product's block: STAGES of BM rows and BN columns by 64 of k (mma),
// two stages of 16 of k and the sums (fused multiply-add).
constexpr int mma_shared(int bm, int bn, int stages) { return stages * (bm + bn) * kStep * 2; }
constexpr int sums_bytes(int bm, int bn) { return bm * (bn + 8) * 4; }
constexpr int fma_shared(int bm, int bn) {
  return 2 * 16 * (bm + 4 + bn + 4) * 4 > sums_bytes(bm, bn) ? 2 * 16 * (bm + 4 + bn + 4) * 4
                                                             : sums_bytes(bm, bn);
}
constexpr int kStages16 = 5, kStages64 = 4, kStages128 = 3;

struct RowParams {
  invar_cuda_in x;
  invar_cuda_out out;
  int64_t rows, cols;
  int64_t first;        // row of the first block of this launch
  int64_t segments;     // of a row; at least 1
  float *maxima, *sums; // [rows][segments], of the split variant
  int32_t mean;         // sum: divide
  int32_t log;          // softmax: of the logarithm
};

struct NormParams {
  invar_cuda_in x, residual, weight;
  invar_cuda_out out, residual_out;
  int64_t rows, cols, first;
  float eps;
};

struct MmParams {
  invar_cuda_mm_args g;
  int64_t chunk;        // length of a chunk of k, a multiple of 64
  int64_t chunks;       // at least 1
  int64_t parts;        // blocks that share the chunks of a tile: 1, or chunks
  int64_t m_tiles, n_tiles;
  int64_t first;        // of this launch
  float *partial;       // [batch][chunk][m][partial_row], when parts > 1
  int64_t partial_row;
};

struct PackParams {
  invar_cuda_in b;
  void *packed;
  int64_t n, k, elements, first;
};

}  // namespace invar
