// Matrix products of 16-bit elements on tensor cores.
//
// The order of an element's operations (docs/contract-cuda.md): k is cut into chunks of
// p.chunk, which follows from k alone. In a chunk the mma instructions run along k in
// steps of 16, from +0, zeros filled up to a multiple of 64. The sums of the chunks are
// added in ascending order. Tiles, warps and stages only say who does it and when.
//
// Shared memory of a stage: BM rows of a and BN rows (or 64 rows of BN columns) of b, 64
// elements of k each. Pieces of 16 bytes lie at their place XOR the row, so that the
// eight rows of an ldmatrix fall into different banks.
#pragma once

#include "mma.cuh"
#include "product.cuh"

namespace invar {

// How b lies: along k, along n, or anyhow (and a too). The first two want runs of 16
// bytes at multiples of 16.
enum Layout { kAlongK, kAlongN, kAnyhow };

template <int M, int N, int ROWS, int COLS, int DEPTH> struct MmaTile {
  static constexpr int BM = M, BN = N, STAGES = DEPTH;
  static constexpr int kThreads = 32 * ROWS * COLS;
  static constexpr int WM = M / ROWS, WN = N / COLS;  // of a warp
  static constexpr int MT = WM / 16, NT = WN / 8;
  static constexpr int kWarpCols = COLS;
  static constexpr int kABytes = BM * kStep * 2, kBBytes = BN * kStep * 2;
  typedef Sums<BM, BN, kThreads> End;
  static_assert(sums_bytes(BM, BN) <= mma_shared(BM, BN, STAGES), "the sums take the place of the stages");
  static_assert(WM % 16 == 0 && WN % 16 == 0, "a warp loads b by two fragments");
};

// Offset of piece `piece` (16 bytes) of row `row`, rows of PIECES pieces. Rows that are a
// multiple of 8 apart have the same permutation.
template <int PIECES> INVAR_DEVICE int swizzled(int row, int piece) {
  return (row * PIECES + (piece ^ (row & 7))) * 16;
}

// Copies ROWS x (PIECES * 8) elements, rows `step` apart at p, into shared memory. rows
// and cols say how many there are from here on; the rest is zeros.
template <int ROWS, int PIECES, int THREADS>
INVAR_DEVICE void copy_tile(SharedAddress to, const uint16_t *p, int64_t step, int rows,
                            int cols) {
  constexpr int kTurn = THREADS / PIECES;  // rows at a time
  static_assert(kTurn % 8 == 0 && ROWS % kTurn == 0, "turns keep the permutation");
  const int piece = thread() % PIECES, row = thread() / PIECES;
  const int left = (cols - piece * 8) * 2, bytes = left >= 16 ? 16 : left > 0 ? left : 0;
  const uint16_t *from = p + row * step + piece * 8;
  to += swizzled<PIECES>(row, piece);
  INVAR_UNROLL
  for (int i = 0; i < ROWS / kTurn; i++) {
    const int n = row + i * kTurn < rows ? bytes : 0;
    copy16(to + i * kTurn * PIECES * 16, n ? from : p, n);
    from += kTurn * step;
  }
}

// The same element by element, for any strides: `row_step` between rows, `k_step` along
// k, into rows of 64. Neighbouring threads take what is nearer in memory.
template <int ROWS, int THREADS>
INVAR_DEVICE void gather_tile(SharedAddress to, const uint16_t *p, int64_t row_step, int64_t k_step,
                              int rows, int ks) {
  const bool rows_near = row_step == 1;
  for (int i = thread(); i < ROWS * 8; i += THREADS) {
    const int row = rows_near ? i % ROWS : i / 8, piece = rows_near ? i / ROWS : i % 8;
    Quad q;
    INVAR_UNROLL
    for (int w = 0; w < 4; w++) {
      uint32_t pair = 0;
      INVAR_UNROLL
      for (int h = 0; h < 2; h++) {
        const int k = piece * 8 + w * 2 + h;
        if (row < rows && k < ks) {
          pair |= static_cast<uint32_t>(p[row * row_step + k * k_step]) << (16 * h);
        }
      }
      q.w[w] = pair;
    }
    put16(to + swizzled<8>(row, piece), q);
  }
}

INVAR_DEVICE int at_most(int64_t n, int limit) { return n < limit ? static_cast<int>(n) : limit; }

template <class T, class Tile, Layout LAYOUT> struct MmaBlock {
  const MmParams &p;
  const Place at;
  unsigned char *const memory;
  const SharedAddress shared;  // the same
  const int lane, row, col;    // of the warp in the tile
  const int rows, cols;        // of the tile that there are

  INVAR_DEVICE MmaBlock(const MmParams &params, unsigned char *bytes)
      : p(params), at(params, Tile::BM, Tile::BN, block()), memory(bytes), shared(shared_address(bytes)),
        lane(thread() % 32), row(thread() / 32 / Tile::kWarpCols * Tile::WM),
        col(thread() / 32 % Tile::kWarpCols * Tile::WN), rows(at_most(p.g.m - at.m0, Tile::BM)),
        cols(at_most(p.g.n - at.n0, Tile::BN)) {}

  INVAR_DEVICE SharedAddress stage_a(int stage) const { return shared + stage * Tile::kABytes; }
  INVAR_DEVICE SharedAddress stage_b(int stage) const {
    return shared + Tile::STAGES * Tile::kABytes + stage * Tile::kBBytes;
  }

  // 64 of k into a stage; `left` are there.
  INVAR_DEVICE void fetch(int stage, const uint16_t *a, const uint16_t *b, int left) const {
    constexpr int kThreads = Tile::kThreads;
    const invar_cuda_in &x = p.g.a, &y = p.g.b;
    if (LAYOUT == kAnyhow) {
      gather_tile<Tile::BM, kThreads>(stage_a(stage), a, x.row, x.col, rows, left);
      gather_tile<Tile::BN, kThreads>(stage_b(stage), b, y.col, y.row, cols, left);
      return;
    }
    copy_tile<Tile::BM, 8, kThreads>(stage_a(stage), a, x.row, rows, left);
    if (LAYOUT == kAlongK) {
      copy_tile<Tile::BN, 8, kThreads>(stage_b(stage), b, y.col, cols, left);
    } else {
      copy_tile<kStep, Tile::BN / 8, kThreads>(stage_b(stage), b, y.row, left, cols);
    }
  }

  // ldmatrix addresses are a fixed part of the lane, and steps along k and n that only
  // touch bits of their own: + where the row moves, ^ where the piece does.
  INVAR_DEVICE void load_a(SharedAddress tile, int kk, uint32_t (&f)[Tile::MT][4]) const {
    const int at_row = (row + lane % 16) * 128, piece = ((lane / 16) ^ (lane % 8)) * 16;
    INVAR_UNROLL
    for (int i = 0; i < Tile::MT; i++) {
      load_matrices(f[i], tile + (at_row + i * 16 * 128) + (piece ^ (kk * 32)));
    }
  }

  // Each load gives the fragments of two neighbouring mma along n.
  INVAR_DEVICE void load_b(SharedAddress tile, int kk, uint32_t (&f)[Tile::NT / 2][4]) const {
    INVAR_UNROLL
    for (int j = 0; j < Tile::NT / 2; j++) {
      if (LAYOUT == kAlongN) {
        const int k = lane % 16 * Tile::BN * 2, piece = ((col / 8 + lane / 16) ^ (lane % 8)) * 16;
        load_transposed(f[j], tile + (k + kk * 16 * Tile::BN * 2) + (piece ^ (j * 32)));
      } else {
        const int n = (col + lane % 8 + lane / 16 * 8) * 128;
        const int piece = ((lane / 8 % 2) ^ (lane % 8)) * 16;
        load_matrices(f[j], tile + (n + j * 16 * 128) + (piece ^ (kk * 32)));
      }
    }
  }

  INVAR_DEVICE void multiply(int stage, float (&acc)[Tile::MT][Tile::NT][4]) const {
    const SharedAddress a = stage_a(stage), b = stage_b(stage);
    INVAR_FEW  // all four at once need more registers than sm_120's compiler finds
    for (int kk = 0; kk < kStep / 16; kk++) {
      uint32_t fa[Tile::MT][4], fb[Tile::NT / 2][4];
      load_a(a, kk, fa);
      load_b(b, kk, fb);
      INVAR_UNROLL
      for (int i = 0; i < Tile::MT; i++) {
        INVAR_UNROLL
        for (int j = 0; j < Tile::NT; j++) {
          multiply_add<T>(acc[i][j], fa[i], fb[j / 2][j % 2 * 2], fb[j / 2][j % 2 * 2 + 1]);
        }
      }
    }
  }

  INVAR_DEVICE void run() const {
    const int64_t k0 = at.k_from(p), length = at.k_to(p) - k0;
    const int64_t step_a = kStep * p.g.a.col, step_b = kStep * p.g.b.row;
    const uint16_t *a = static_cast<const uint16_t *>(p.g.a.data) + at.a + at.m0 * p.g.a.row +
                        k0 * p.g.a.col;
    const uint16_t *b = static_cast<const uint16_t *>(p.g.b.data) + at.b + at.n0 * p.g.b.col +
                        k0 * p.g.b.row;
    const int steps = static_cast<int>((length + kStep - 1) / kStep);
    const int last = static_cast<int>(length - static_cast<int64_t>(steps - 1) * kStep);
    const int chunk_steps = static_cast<int>(p.chunk / kStep);
    float acc[Tile::MT][Tile::NT][4], sum[Tile::MT][Tile::NT][4];
    int fetched = 0, into = 0, stage = 0;
    const auto fetch_next = [&] {
      if (fetched < steps) {
        fetch(into, a, b, fetched + 1 < steps ? kStep : last);
        a += step_a;
        b += step_b;
        fetched++;
        into = into + 1 == Tile::STAGES ? 0 : into + 1;
      }
      commit_copies();
    };
    for (int s = 0; s < Tile::STAGES - 1; s++) fetch_next();
    // A loop for each chunk: an end of chunk inside one loop costs a copy of all sums, which
    // sm_120's compiler finds no registers for.
    int s = 0;
    do {  // once where k is 0: the sums are zeros then
      const bool first = s == 0;
      const int end = steps - s < chunk_steps ? steps : s + chunk_steps;
      each([&](int i, int j, int e) { acc[i][j][e] = 0.0f; });
      for (; s < end; s++) {
        await_copies<Tile::STAGES - 2>();
        barrier();  // the stage is there for all, and nobody reads the one that is filled next
        fetch_next();
        multiply(stage, acc);
        stage = stage + 1 == Tile::STAGES ? 0 : stage + 1;
      }
      fold(acc, sum, first);
    } while (s < steps);
    await_copies<0>();
    barrier();  // the stages are free: the sums take their place
    put_sums(sum);
    barrier();
    Tile::End::deliver(p, reinterpret_cast<const float *>(memory));
  }

  INVAR_DEVICE void put_sums(const float (&sum)[Tile::MT][Tile::NT][4]) const {
    float *to = reinterpret_cast<float *>(memory) + (row + lane / 4) * Tile::End::kRow + col +
                lane % 4 * 2;
    each([&](int i, int j, int e) {
      to[(i * 16 + e / 2 * 8) * Tile::End::kRow + j * 8 + e % 2] = sum[i][j][e];
    });
  }

  template <class F> static INVAR_DEVICE void each(F f) {
    INVAR_UNROLL
    for (int i = 0; i < Tile::MT; i++) {
      INVAR_UNROLL
      for (int j = 0; j < Tile::NT; j++) {
        INVAR_UNROLL
        for (int e = 0; e < 4; e++) f(i, j, e);
      }
    }
  }

  static INVAR_DEVICE void fold(const float (&acc)[Tile::MT][Tile::NT][4],
                                float (&sum)[Tile::MT][Tile::NT][4], bool first) {
    each([&](int i, int j, int e) {
      sum[i][j][e] = first ? acc[i][j][e] : add(sum[i][j][e], acc[i][j][e]);
    });
  }
};

// Rows by columns, warps by rows and columns, stages. 16 rows are what one mma has.
typedef MmaTile<16, 64, 1, 4, kStages16> Tile16;
typedef MmaTile<64, 64, 2, 2, kStages64> Tile64;
typedef MmaTile<128, 128, 2, 4, kStages128> Tile128;

}  // namespace invar

#define INVAR_MMA_KERNEL(name, type, tile, layout, blocks)                                  \
  INVAR_KERNEL(name, invar::MmParams, invar::tile::kThreads, blocks) {                      \
    INVAR_SHARED(shared);                                                                   \
    invar::MmaBlock<invar::type, invar::tile, invar::layout>(p, shared).run();              \
  }

#define INVAR_MMA_KERNELS(dtype, type)                                   \
  INVAR_MMA_KERNEL(invar_mm_##dtype##_16_k, type, Tile16, kAlongK, 4)    \
  INVAR_MMA_KERNEL(invar_mm_##dtype##_16_n, type, Tile16, kAlongN, 4)    \
  INVAR_MMA_KERNEL(invar_mm_##dtype##_64_k, type, Tile64, kAlongK, 3)    \
  INVAR_MMA_KERNEL(invar_mm_##dtype##_64_n, type, Tile64, kAlongN, 3)    \
  INVAR_MMA_KERNEL(invar_mm_##dtype##_64_any, type, Tile64, kAnyhow, 2)  \
  INVAR_MMA_KERNEL(invar_mm_##dtype##_128_k, type, Tile128, kAlongK, 1)  \
  INVAR_MMA_KERNEL(invar_mm_##dtype##_128_n, type, Tile128, kAlongN, 1)
