// What goes with the matrix products: the sums of chunks that were computed in several
// blocks, packing, and the negative control.
#include "product.cuh"

using namespace invar;

// A thread for eight neighbours of a row of out: the chunks, one after the other.
INVAR_KERNEL(invar_mm_end, MmParams, kRowThreads, 1) {
  const int64_t runs = (p.g.n + kRun - 1) / kRun;
  const int64_t id = p.first + block() * kRowThreads + thread();
  const int64_t batch = id / runs / p.g.m;
  const int64_t i = id / runs % p.g.m, j = id % runs * kRun;
  int64_t c = 0, out = 0, rest = batch;
  for (int d = INVAR_CUDA_BATCH_DIMS - 1; d >= 0; d--) {
    c += rest % p.g.batch[d].size * p.g.batch[d].c;
    out += rest % p.g.batch[d].size * p.g.batch[d].out;
    rest /= p.g.batch[d].size;
  }
  if (rest > 0) return;  // past the last one
  float v[kRun];
  for (int64_t chunk = 0; chunk < p.chunks; chunk++) {
    const Quad *from = reinterpret_cast<const Quad *>(partial_of(p, batch, chunk, i, j));
    const Quad low = from[0], high = from[1];
    INVAR_UNROLL
    for (int e = 0; e < kRun; e++) {
      const float w = float_of(e < 4 ? low.w[e & 3] : high.w[e & 3]);
      v[e] = chunk == 0 ? w : add(v[e], w);
    }
  }
  finish(p, c, out, i, j, v);
}

// A thread for each element of the packed form.
INVAR_KERNEL(invar_pack, PackParams, kRowThreads, 1) {
  const int64_t id = p.first + block() * kRowThreads + thread();
  if (id >= p.elements) return;
  const int64_t j = id / (p.k * INVAR_CUDA_PANEL) * INVAR_CUDA_PANEL + id % INVAR_CUDA_PANEL;
  const int64_t i = id / INVAR_CUDA_PANEL % p.k;
  const float v = j < p.n ? load(p.b, i * p.b.row + j * p.b.col) : 0.0f;
  store(invar_cuda_out{p.packed, 0, 1, p.b.dtype, 0}, id, v);
}

// The negative control: a sum of 1 + m mod 13 slices of k. Nothing routes to it.
INVAR_KERNEL(invar_control, MmParams, kRowThreads, 1) {
  const int64_t id = p.first + block() * kRowThreads + thread();
  if (id >= p.g.m * p.g.n) return;
  const int64_t i = id / p.g.n, j = id % p.g.n, slices = 1 + p.g.m % 13;
  float all = 0.0f;
  for (int64_t s = 0; s < slices; s++) {
    float part = 0.0f;
    for (int64_t t = p.g.k * s / slices; t < p.g.k * (s + 1) / slices; t++) {
      part = fused(load(p.g.a, i * p.g.a.row + t * p.g.a.col),
                 load(p.g.b, t * p.g.b.row + j * p.g.b.col), part);
    }
    all = add(all, part);
  }
  float v = mul(p.g.alpha, all);
  if (p.g.c.data && p.g.beta != 0.0f) {
    v = add(v, mul(p.g.beta, load(p.g.c, i * p.g.c.row + j * p.g.c.col)));
  }
  store(p.g.out, i * p.g.out.row + j * p.g.out.col, v);
}
