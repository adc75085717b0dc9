// The instructions of a tensor-core product: asynchronous copies into shared memory,
// ldmatrix, and mma.sync of 16 rows by 8 columns by 16 of k with float32 sums.
#pragma once

#include "convert.cuh"

namespace invar {

#if defined(__CUDACC__)

typedef uint32_t SharedAddress;

INVAR_DEVICE SharedAddress shared_address(unsigned char *p) {
  return static_cast<SharedAddress>(__cvta_generic_to_shared(p));
}

// 16 bytes at `to`: the first `bytes` from `from`, then zeros. With bytes = 0 nothing
// is read.
INVAR_DEVICE void copy16(SharedAddress to, const void *from, int bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes));
}
INVAR_DEVICE void commit_copies() { asm volatile("cp.async.commit_group;"); }
// Until at most N groups of this thread are still under way.
template <int N> INVAR_DEVICE void await_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}
INVAR_DEVICE void put16(SharedAddress to, const Quad &q) {
  asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(q.w[0]), "r"(q.w[1]),
               "r"(q.w[2]), "r"(q.w[3]));
}

// Four 8x8 matrices of 16-bit elements; lane l names row l % 8 of matrix l / 8.
INVAR_DEVICE void load_matrices(uint32_t (&r)[4], SharedAddress row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(row));
}
INVAR_DEVICE void load_transposed(uint32_t (&r)[4], SharedAddress row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(row));
}

template <class T>
INVAR_DEVICE void multiply_add(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1);

template <>
INVAR_DEVICE void multiply_add<BF16>(float (&d)[4], const uint32_t (&a)[4], uint32_t b0,
                                     uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, "
      "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
template <>
INVAR_DEVICE void multiply_add<F16>(float (&d)[4], const uint32_t (&a)[4], uint32_t b0,
                                    uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, "
      "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

#else

// What PTX documents about the layout of fragments, lane by lane.

typedef unsigned char *SharedAddress;

inline SharedAddress shared_address(unsigned char *p) { return p; }
inline void copy16(SharedAddress to, const void *from, int bytes) {
  emulated::copy_later(to, from, bytes, 16 - bytes);
}
inline void commit_copies() { emulated::commit_copies(); }
template <int N> inline void await_copies() { emulated::finish_copies(N); }
inline void put16(SharedAddress to, const Quad &q) { memcpy(to, &q, 16); }

inline uint32_t pair(uint16_t low, uint16_t high) { return low | uint32_t(high) << 16; }

inline void load_8x8(uint32_t (&r)[4], SharedAddress row, bool transposed) {
  SharedAddress rows[32];
  memcpy(rows, emulated::exchange(&row, sizeof row), sizeof rows);
  const int group = thread() % 32 / 4, two = thread() % 4 * 2;
  for (int m = 0; m < 4; m++) {
    uint16_t low, high;
    const SharedAddress *matrix = rows + 8 * m;
    memcpy(&low, transposed ? matrix[two] + 2 * group : matrix[group] + 2 * two, 2);
    memcpy(&high, transposed ? matrix[two + 1] + 2 * group : matrix[group] + 2 * two + 2, 2);
    r[m] = pair(low, high);
  }
}
inline void load_matrices(uint32_t (&r)[4], SharedAddress row) { load_8x8(r, row, false); }
inline void load_transposed(uint32_t (&r)[4], SharedAddress row) { load_8x8(r, row, true); }

struct Fragments {
  uint32_t a[4], b[2];
};

// d + the sum over 16 products, in one of two orders. The machine has a third, which no
// document states; it is the same for every position in the tile.
template <class T> inline float products(const Fragments *lanes, int row, int col, float d) {
  double wide = 0;
  for (int k = 0; k < 16; k++) {
    const uint32_t x = lanes[row % 8 * 4 + k % 8 / 2].a[row / 8 + k / 8 * 2];
    const uint32_t y = lanes[col * 4 + k % 8 / 2].b[k / 8];
    const float a = T::widen(uint16_t(x >> (k % 2 * 16))), b = T::widen(uint16_t(y >> (k % 2 * 16)));
    if (emulated::product_model() == emulated::Product::chain) {
      d = fused(a, b, d);
    } else {
      wide += double(a) * double(b);
    }
  }
  return emulated::product_model() == emulated::Product::chain ? d : float(double(d) + wide);
}

template <class T>
inline void multiply_add(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  const Fragments mine{{a[0], a[1], a[2], a[3]}, {b0, b1}};
  Fragments all[32];
  memcpy(all, emulated::exchange(&mine, sizeof mine), sizeof all);
  const int row = thread() % 32 / 4, col = thread() % 4 * 2;
  for (int i = 0; i < 4; i++) d[i] = products<T>(all, row + i / 2 * 8, col + i % 2, d[i]);
}

#endif

}  // namespace invar
