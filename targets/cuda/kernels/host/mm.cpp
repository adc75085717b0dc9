// Matrix products: checks, the choice of a variant, launches.
#define INVAR_CUDA_BUILD
#include "check.h"
#include "kernels.h"

namespace invar {
namespace {

// A tile, and the kernels of it by how b lies: along k, along n.
struct Tile {
  const char *name, *split_name;
  int bm, bn, shared;
  Kernel along_k, along_n;
};

#define MMA_TILES(dtype)                                                                        \
  {"16x64", "16x64 split", 16, 64, mma_shared(16, 64, kStages16), k_invar_mm_##dtype##_16_k,    \
   k_invar_mm_##dtype##_16_n},                                                                  \
      {"64x64", "64x64 split", 64, 64, mma_shared(64, 64, kStages64),                           \
       k_invar_mm_##dtype##_64_k, k_invar_mm_##dtype##_64_n},                                   \
      {"128x128", "128x128 split", 128, 128, mma_shared(128, 128, kStages128),                  \
       k_invar_mm_##dtype##_128_k, k_invar_mm_##dtype##_128_n},                                 \
      {"64x64 gathered", "64x64 gathered split", 64, 64, mma_shared(64, 64, kStages64),         \
       k_invar_mm_##dtype##_64_any, k_invar_mm_##dtype##_64_any},

// The order of the tiles for a dtype. Only the gathered one takes operands at any
// address with any strides; those of float32 all do.
enum { kSmall, kMiddle, kLarge, kGathered };
const Tile kTilesF32[] = {
    {"16x64", "16x64 split", 16, 64, fma_shared(16, 64), k_invar_mm_f32_16, k_invar_mm_f32_16},
    {"64x64", "64x64 split", 64, 64, fma_shared(64, 64), k_invar_mm_f32_64, k_invar_mm_f32_64},
    {"128x64", "128x64 split", 128, 64, fma_shared(128, 64), k_invar_mm_f32_128,
     k_invar_mm_f32_128},
};
const Tile kTilesBf16[] = {MMA_TILES(bf16)};
const Tile kTilesF16[] = {MMA_TILES(f16)};

const Tile *tiles_of(int32_t dtype, int &count) {
  count = dtype == INVAR_CUDA_FLOAT32 ? 3 : 4;
  return dtype == INVAR_CUDA_FLOAT32    ? kTilesF32
         : dtype == INVAR_CUDA_BFLOAT16 ? kTilesBf16
                                        : kTilesF16;
}

// ---- How operands lie

enum Layout { kAlongK, kAlongN, kAnyhow };

// Runs of 8 elements at multiples of 16 bytes along the dimension of step 1.
bool in_pieces(const void *data, int64_t step, int64_t other, int64_t lines) {
  return step == 1 && (other % 8 == 0 || lines == 1) && reinterpret_cast<uintptr_t>(data) % 16 == 0;
}

Layout layout_of(const invar_cuda_mm_args &g) {
  if (!in_pieces(g.a.data, g.a.col, g.a.row, g.m)) return kAnyhow;
  for (const invar_cuda_batch &d : g.batch) {
    if (d.size > 1 && (d.a % 8 || d.b % 8)) return kAnyhow;
  }
  if (in_pieces(g.b.data, g.b.row, g.b.col, g.n)) return kAlongK;
  return in_pieces(g.b.data, g.b.col, g.b.row, g.k) ? kAlongN : kAnyhow;
}

// ---- The plan

struct Plan {
  const Tile *tile;
  Layout layout;
  bool split;
  int64_t chunk, chunks, m_tiles, n_tiles, batch, workspace;
};

// Blocks that are enough to keep a device busy. Not asked of the device, although it
// would change no bit: the same call does the same everywhere.
constexpr int64_t kEnough = 264;
constexpr int64_t kEnoughLarge = 96;  // of the largest tile, or else a smaller one does better
constexpr int64_t kFewToSplit = 64;   // with many rows the chunks' sums cost more than they save

constexpr int64_t kLongest = int64_t(1) << 36;  // of k: a kernel counts its steps in 32 bits

int64_t round_up(int64_t a, int64_t b) { return divide_up(a, b) * b; }

// docs/contract-cuda.md: what follows from k alone.
int64_t chunk_of(int64_t k) {
  const int64_t even = round_up(divide_up(k, kMostChunks), kStep);
  return even > kChunk ? even : kChunk;
}

int choose_tile(const invar_cuda_mm_args &g, Layout layout, int64_t batch) {
  if (layout == kAnyhow && g.a.dtype != INVAR_CUDA_FLOAT32) return kGathered;
  if (g.m <= 16) return kSmall;
  const int64_t large = divide_up(g.m, 128) * divide_up(g.n, 128) * batch;
  return g.m > 64 && g.n > 64 && large >= kEnoughLarge ? kLarge : kMiddle;
}

int32_t check_shape(const invar_cuda_mm_args &g) {
  if (bad_size(g.m) || bad_size(g.n) || bad_size(g.k) || g.k > kLongest) return INVAR_CUDA_BAD_SIZE;
  int64_t batch = 1;
  for (const invar_cuda_batch &d : g.batch) {
    if (d.size < 0) return INVAR_CUDA_BAD_SIZE;
    batch = d.size == 0 || batch == 0 ? 0 : product(batch, d.size);
    if (batch < 0) return INVAR_CUDA_BAD_SIZE;
  }
  const int64_t matrix = product(g.m, round_up(g.n, 8));
  if (matrix < 0 || product(batch, matrix) < 0) return INVAR_CUDA_BAD_SIZE;
  if (bad_dtype(g.a.dtype) || g.b.dtype != g.a.dtype || bad_dtype(g.out.dtype) ||
      (g.c.data && bad_dtype(g.c.dtype))) {
    return INVAR_CUDA_BAD_DTYPE;
  }
  return INVAR_CUDA_OK;
}

int32_t plan_of(const invar_cuda_mm_args &g, Plan &p) {
  if (const int32_t s = check_shape(g)) return s;
  p.layout = layout_of(g);
  p.batch = 1;
  for (const invar_cuda_batch &d : g.batch) p.batch *= d.size;
  p.chunk = chunk_of(g.k);
  p.chunks = g.k > p.chunk ? divide_up(g.k, p.chunk) : 1;
  int count = 0;
  const Tile *tiles = tiles_of(g.a.dtype, count);
  const int forced = g.variant - 1;
  if (forced < -1 || forced >= 2 * count) return INVAR_CUDA_BAD_VARIANT;
  const int tile = forced < 0 ? choose_tile(g, p.layout, p.batch) : forced % count;
  if (p.layout == kAnyhow && g.a.dtype != INVAR_CUDA_FLOAT32 && tile != kGathered) {
    return INVAR_CUDA_BAD_VARIANT;
  }
  p.tile = &tiles[tile];
  p.m_tiles = divide_up(g.m, p.tile->bm);
  p.n_tiles = divide_up(g.n, p.tile->bn);
  const int64_t blocks = p.batch * p.m_tiles * p.n_tiles;
  p.split = forced < 0 ? p.chunks > 1 && blocks < (g.m <= 64 ? kEnough : kFewToSplit)
                       : forced >= count && p.chunks > 1;
  p.workspace = 0;
  if (p.split) {
    p.workspace = product(product(p.batch * g.m, round_up(g.n, 8)), p.chunks * 4);
    if (p.workspace < 0) return INVAR_CUDA_BAD_SIZE;
  }
  return INVAR_CUDA_OK;
}

int32_t check_pointers(const invar_cuda_mm_args &g) {
  const bool bad = bad_pointer(g.out.data, g.out.dtype) ||
                   (g.k && (bad_pointer(g.a.data, g.a.dtype) || bad_pointer(g.b.data, g.b.dtype))) ||
                   (g.c.data && bad_pointer(g.c.data, g.c.dtype));
  return bad ? INVAR_CUDA_BAD_POINTER : INVAR_CUDA_OK;
}

MmParams params_of(const invar_cuda_mm_args &g, const Plan &plan, void *workspace) {
  MmParams p{};
  p.g = g;
  if (g.beta == 0.0f) p.g.c.data = nullptr;
  p.chunk = plan.chunk;
  p.chunks = plan.chunks;
  p.parts = plan.split ? plan.chunks : 1;
  p.m_tiles = plan.m_tiles;
  p.n_tiles = plan.n_tiles;
  p.partial = static_cast<float *>(workspace);
  p.partial_row = round_up(g.n, kRun);
  return p;
}

int32_t mm(const invar_cuda_mm_args *g, void *workspace, int64_t size, void *stream) {
  if (!g) return INVAR_CUDA_BAD_POINTER;
  Plan plan{};
  if (const int32_t s = plan_of(*g, plan)) return s;
  if (!g->m || !g->n || !plan.batch) return INVAR_CUDA_OK;
  int32_t s = first_of(check_pointers(*g), check_workspace(plan.workspace, workspace, size));
  if (s) return s;
  const MmParams p = params_of(*g, plan, workspace);
  const Kernel kernel = plan.layout == kAlongN ? plan.tile->along_n : plan.tile->along_k;
  s = launch_all(kernel, plan.batch * p.parts * p.m_tiles * p.n_tiles, 1, plan.tile->shared, p,
                 stream);
  if (s || !plan.split) return s;
  const int64_t runs = plan.batch * g->m * divide_up(g->n, kRun);
  return launch_all(k_invar_mm_end, divide_up(runs, kRowThreads), kRowThreads, 0, p, stream);
}

int32_t pack(const invar_cuda_in *b, int64_t n, int64_t k, void *packed, void *stream) {
  if (!b) return INVAR_CUDA_BAD_POINTER;
  PackParams p{};
  p.elements = invar_cuda_packed_elements(n, k);
  if (p.elements < 0) return INVAR_CUDA_BAD_SIZE;
  if (bad_dtype(b->dtype)) return INVAR_CUDA_BAD_DTYPE;
  if (!p.elements) return INVAR_CUDA_OK;
  if (bad_pointer(b->data, b->dtype) || bad_pointer(packed, b->dtype)) {
    return INVAR_CUDA_BAD_POINTER;
  }
  p.b = *b;
  p.packed = packed;
  p.n = n;
  p.k = k;
  return launch_all(k_invar_pack, divide_up(p.elements, kRowThreads), kRowThreads, 0, p, stream);
}

int32_t control(const invar_cuda_mm_args *g, void *stream) {
  if (!g) return INVAR_CUDA_BAD_POINTER;
  if (const int32_t s = check_shape(*g)) return s;
  for (const invar_cuda_batch &d : g->batch) {
    if (d.size != 1) return INVAR_CUDA_BAD_SIZE;
  }
  if (g->variant) return INVAR_CUDA_BAD_VARIANT;
  if (!g->m || !g->n) return INVAR_CUDA_OK;
  if (const int32_t s = check_pointers(*g)) return s;
  MmParams p{};
  p.g = *g;
  return launch_all(k_invar_control, divide_up(g->m * g->n, kRowThreads), kRowThreads, 0, p,
                    stream);
}

}  // namespace
}  // namespace invar

extern "C" {

const char *invar_cuda_mm_variant_name(int32_t dtype, int32_t index) {
  if (invar::bad_dtype(dtype)) return nullptr;
  int count = 0;
  const invar::Tile *tiles = invar::tiles_of(dtype, count);
  if (index < 0 || index >= 2 * count) return nullptr;
  return index < count ? tiles[index].name : tiles[index - count].split_name;
}

int64_t invar_cuda_mm_workspace(const invar_cuda_mm_args *g) {
  invar::Plan plan{};
  return !g || invar::plan_of(*g, plan) ? -1 : plan.workspace;
}

int32_t invar_cuda_mm(const invar_cuda_mm_args *g, void *workspace, int64_t size, void *stream) {
  return invar::mm(g, workspace, size, stream);
}

int64_t invar_cuda_packed_elements(int64_t n, int64_t k) {
  if (invar::bad_size(n) || invar::bad_size(k)) return -1;
  return invar::product(invar::divide_up(n, INVAR_CUDA_PANEL) * INVAR_CUDA_PANEL, k);
}

int32_t invar_cuda_pack(const invar_cuda_in *b, int64_t n, int64_t k, void *packed, void *stream) {
  return invar::pack(b, n, k, packed, stream);
}

int32_t invar_cuda_control_mm(const invar_cuda_mm_args *g, void *stream) {
  return invar::control(g, stream);
}

}  // extern "C"
