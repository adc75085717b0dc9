// What both kinds of matrix product share: which tile and which chunks of k a block
// has, and what happens to a sum at the end.
#pragma once

#include "convert.cuh"

namespace invar {

// Tiles of the same columns follow on each other in groups of 8 rows of tiles, so that
// blocks that run together read the same of b and little of a.
struct Place {
  int64_t m0, n0;       // first row and column of the tile
  int64_t from, to;     // chunks
  int64_t batch, part;
  int64_t a, b, c, out; // steps of the batch, in elements

  INVAR_DEVICE Place(const MmParams &p, int bm, int bn, int64_t id) {
    id += p.first;
    const int64_t tiles = p.m_tiles * p.n_tiles;
    int64_t t = id % tiles;
    id /= tiles;
    part = id % p.parts;
    batch = id / p.parts;
    const int64_t width = 8 * p.n_tiles, first = t / width * 8;
    const int64_t high = p.m_tiles - first < 8 ? p.m_tiles - first : 8;
    t %= width;
    m0 = (first + t % high) * bm;
    n0 = t / high * bn;
    from = p.parts > 1 ? part : 0;
    to = p.parts > 1 ? part + 1 : p.chunks;
    a = b = c = out = 0;
    int64_t rest = batch;
    for (int d = INVAR_CUDA_BATCH_DIMS - 1; d >= 0; d--) {
      const invar_cuda_batch &e = p.g.batch[d];
      const int64_t i = rest % e.size;
      rest /= e.size;
      a += i * e.a;
      b += i * e.b;
      c += i * e.c;
      out += i * e.out;
    }
  }

  INVAR_DEVICE int64_t k_from(const MmParams &p) const { return from * p.chunk; }
  INVAR_DEVICE int64_t k_to(const MmParams &p) const {
    return to * p.chunk < p.g.k ? to * p.chunk : p.g.k;
  }
};

// alpha * sum + beta * c for the elements (i, j) to (i, j + 7), each rounded once to out.
INVAR_DEVICE void finish(const MmParams &p, int64_t c, int64_t out, int64_t i, int64_t j,
                         float (&v)[kRun]) {
  const invar_cuda_in &addend = p.g.c;
  INVAR_UNROLL
  for (int e = 0; e < kRun; e++) v[e] = mul(p.g.alpha, v[e]);
  if (addend.data && p.g.beta != 0.0f) {
    float w[kRun];
    const int64_t offset = (c + i * addend.row) * element_size(addend.dtype);
    load_run(addend.dtype, static_cast<const char *>(addend.data) + offset, addend.col, j, p.g.n,
             0.0f, w);
    INVAR_UNROLL
    for (int e = 0; e < kRun; e++) v[e] = add(v[e], mul(p.g.beta, w[e]));
  }
  const int64_t offset = (out + i * p.g.out.row) * element_size(p.g.out.dtype);
  store_run(p.g.out.dtype, static_cast<char *>(p.g.out.data) + offset, p.g.out.col, j, p.g.n, v);
}

// Where the sum of one chunk for element (i, j) lies in the workspace.
INVAR_DEVICE float *partial_of(const MmParams &p, int64_t batch, int64_t chunk, int64_t i,
                               int64_t j) {
  return p.partial + ((batch * p.chunks + chunk) * p.g.m + i) * p.partial_row + j;
}

// The sums of a block's chunks, as the block put them into shared memory: the end of it
// all, or the part of one chunk. A thread takes eight neighbours of a row at a time.
template <int BM, int BN, int THREADS> struct Sums {
  static constexpr int kRow = BN + 8;  // floats from row to row
  static_assert(BM * BN / kRun % THREADS == 0 || BM * BN / kRun < THREADS, "whole turns");

  static INVAR_DEVICE void deliver(const MmParams &p, const float *sums) {
    const Place at(p, BM, BN, block_again());  // not kept in registers until now
    INVAR_ROLLED
    for (int q = thread(); q < BM * BN / kRun; q += THREADS) {
      const int row = q / (BN / kRun), col = q % (BN / kRun) * kRun;
      const int64_t i = at.m0 + row, j = at.n0 + col;
      if (i >= p.g.m || j >= p.g.n) continue;
      const Quad *from = reinterpret_cast<const Quad *>(sums + row * kRow + col);
      const Quad low = from[0], high = from[1];
      if (p.parts > 1) {  // rows of the workspace have room for a whole run
        Quad *to = reinterpret_cast<Quad *>(partial_of(p, at.batch, at.part, i, j));
        to[0] = low;
        to[1] = high;
        continue;
      }
      float v[kRun];
      INVAR_UNROLL
      for (int e = 0; e < kRun; e++) v[e] = float_of(e < 4 ? low.w[e & 3] : high.w[e & 3]);
      finish(p, at.c, at.out, i, j, v);
    }
  }
};

}  // namespace invar
