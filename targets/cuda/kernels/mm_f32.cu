// Matrix products of float32 by fused multiply-adds, one element after the other along
// k. Chunks of k as in mm_mma.cuh.
//
// A thread has TM x TN elements of a tile. Each step of 16 along k goes through shared
// memory, the next one is on its way in registers meanwhile.
#include "product.cuh"

namespace invar {
namespace {

template <int M, int N, int TM, int TN> struct FmaTile {
  static constexpr int BM = M, BN = N, ROWS = TM, COLS = TN;
  static constexpr int kThreads = 256, kDepth = 16;
  static constexpr int kAcross = N / TN;  // threads along n
  static constexpr int kPad = 4;          // floats that keep columns of a out of one bank
  static constexpr int kFloats = kDepth * (BM + kPad + BN + kPad);
  typedef Sums<BM, BN, kThreads> End;
  static constexpr int kTakeA = BM * kDepth / kThreads, kTakeB = BN * kDepth / kThreads;
  static_assert(M / TM * kAcross == kThreads, "each thread has its elements");
};

// One operand's step of 16 along k: WIDTH rows of a or columns of b.
template <int WIDTH, int THREADS, int TAKE> struct Slice {
  const float *p;
  int64_t across, along;  // steps between rows (or columns) and along k
  int64_t width;          // rows (or columns) that there are
  bool near;              // neighbouring threads take neighbours across, else along k

  INVAR_DEVICE int lane(int q) const {
    const int i = thread() + q * THREADS;
    return near ? i % WIDTH : i / 16;
  }
  INVAR_DEVICE int depth(int q) const {
    const int i = thread() + q * THREADS;
    return near ? i / WIDTH : i % 16;
  }
  INVAR_DEVICE void take(int64_t k, int64_t k_end, float (&r)[TAKE]) const {
    INVAR_UNROLL
    for (int q = 0; q < TAKE; q++) {
      const int i = lane(q), d = depth(q);
      const bool there = i < width && k + d < k_end;
      r[q] = there ? p[i * across + (k + d) * along] : 0.0f;
    }
  }
  INVAR_DEVICE void put(float *to, const float (&r)[TAKE]) const {
    INVAR_UNROLL
    for (int q = 0; q < TAKE; q++) to[depth(q) * (WIDTH + 4) + lane(q)] = r[q];
  }
};

template <class Tile> struct FmaBlock {
  const MmParams &p;
  const Place at;
  float *const shared;
  const int row, col;  // of the thread's first element in the tile
  Slice<Tile::BM, Tile::kThreads, Tile::kTakeA> a;
  Slice<Tile::BN, Tile::kThreads, Tile::kTakeB> b;

  INVAR_DEVICE FmaBlock(const MmParams &params, unsigned char *memory)
      : p(params), at(params, Tile::BM, Tile::BN, block()), shared(reinterpret_cast<float *>(memory)),
        row(thread() / Tile::kAcross * Tile::ROWS), col(thread() % Tile::kAcross * Tile::COLS) {
    const invar_cuda_in &x = p.g.a, &y = p.g.b;
    a = {static_cast<const float *>(x.data) + at.a + at.m0 * x.row, x.row, x.col, p.g.m - at.m0,
         x.row == 1};
    b = {static_cast<const float *>(y.data) + at.b + at.n0 * y.col, y.col, y.row, p.g.n - at.n0,
         y.col == 1};
  }

  INVAR_DEVICE float *stage_a(int s) const { return shared + s * Tile::kFloats; }
  INVAR_DEVICE float *stage_b(int s) const {
    return stage_a(s) + Tile::kDepth * (Tile::BM + Tile::kPad);
  }

  // One element of k after the other.
  INVAR_DEVICE void multiply(int s, int depth, float (&acc)[Tile::ROWS][Tile::COLS]) const {
    const float *x = stage_a(s) + row, *y = stage_b(s) + col;
    INVAR_UNROLL
    for (int d = 0; d < Tile::kDepth; d++) {
      if (d >= depth) break;
      INVAR_UNROLL
      for (int i = 0; i < Tile::ROWS; i++) {
        INVAR_UNROLL
        for (int j = 0; j < Tile::COLS; j++) {
          acc[i][j] = fused(x[d * (Tile::BM + Tile::kPad) + i], y[d * (Tile::BN + Tile::kPad) + j],
                          acc[i][j]);
        }
      }
    }
  }

  INVAR_DEVICE void run() const {
    float acc[Tile::ROWS][Tile::COLS], sum[Tile::ROWS][Tile::COLS];
    float next_a[Tile::kTakeA], next_b[Tile::kTakeB];
    int stage = 0;
    for (int64_t chunk = at.from; chunk < at.to; chunk++) {
      const int64_t k0 = chunk * p.chunk, k1 = k0 + p.chunk < p.g.k ? k0 + p.chunk : p.g.k;
      each([&](int i, int j) { acc[i][j] = 0.0f; });
      a.take(k0, k1, next_a);
      b.take(k0, k1, next_b);
      for (int64_t k = k0; k < k1; k += Tile::kDepth) {
        a.put(stage_a(stage), next_a);
        b.put(stage_b(stage), next_b);
        barrier();  // and the other stage has been read by all
        a.take(k + Tile::kDepth, k1, next_a);
        b.take(k + Tile::kDepth, k1, next_b);
        if (k + Tile::kDepth <= k1) {
          multiply(stage, Tile::kDepth, acc);
        } else {
          multiply(stage, static_cast<int>(k1 - k), acc);
        }
        stage ^= 1;
      }
      const bool first = chunk == at.from;
      each([&](int i, int j) { sum[i][j] = first ? acc[i][j] : add(sum[i][j], acc[i][j]); });
    }
    barrier();  // the stages are free: the sums take their place
    each([&](int i, int j) { shared[(row + i) * Tile::End::kRow + col + j] = sum[i][j]; });
    barrier();
    Tile::End::deliver(p, shared);
  }

  template <class F> static INVAR_DEVICE void each(F f) {
    INVAR_UNROLL
    for (int i = 0; i < Tile::ROWS; i++) {
      INVAR_UNROLL
      for (int j = 0; j < Tile::COLS; j++) f(i, j);
    }
  }
};

typedef FmaTile<16, 64, 2, 2> Fma16;
typedef FmaTile<64, 64, 4, 4> Fma64;
typedef FmaTile<128, 64, 8, 4> Fma128;

}  // namespace
}  // namespace invar

using namespace invar;

#define INVAR_FMA_KERNEL(name, tile, blocks)                   \
  INVAR_KERNEL(name, MmParams, tile::kThreads, blocks) {       \
    INVAR_SHARED(shared);                                      \
    FmaBlock<tile>(p, shared).run();                           \
  }

INVAR_FMA_KERNEL(invar_mm_f32_16, Fma16, 2)
INVAR_FMA_KERNEL(invar_mm_f32_64, Fma64, 1)
INVAR_FMA_KERNEL(invar_mm_f32_128, Fma128, 1)
