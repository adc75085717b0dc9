/*
 * invar_cpu.h: the C ABI of libinvar_cpu.so, stage 1 of the CPU target.
 *
 * What the functions compute, to the bit, is docs/contract.md. This header says
 * how they are called.
 *
 * Units and shapes
 *   Sizes are counts of elements (int64_t). Strides are in elements too, may be
 *   zero (broadcast, inputs only) or negative, and point from one element to the
 *   next in that direction. Every size may be zero. Scratch sizes are in bytes.
 *
 * Pointers
 *   No operand needs any alignment, not even to its own element. 64 bytes are
 *   fastest. A pointer may be NULL only where no element is behind it or where a
 *   comment says so. Outputs must not overlap inputs, except that out may be the
 *   same matrix (same pointer, same strides, same dtype) as x in the row
 *   operators other than sum and mean, and residual_out the same as residual.
 *
 * Threads
 *   No function starts a thread, allocates or locks. A caller splits the work
 *   into ranges (panels of mm and pack, rows of the row operators) and may run
 *   them in any split, order and number of threads, each with its own scratch:
 *   the bits of an output element do not depend on it.
 *
 * Floating-point state
 *   Each call sets round-to-nearest, no flush-to-zero and no
 *   denormals-are-zero for itself, and gives back the control and status
 *   register that it found.
 *
 * Errors
 *   Functions that return int32_t give INVAR_CPU_OK or one of the codes below,
 *   and then have written nothing. There are no others: no errno, no abort.
 */
#ifndef INVAR_CPU_H
#define INVAR_CPU_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(INVAR_CPU_BUILD)
#define INVAR_CPU_API __attribute__((visibility("default")))
#else
#define INVAR_CPU_API
#endif

/* Raised whenever a declaration or the packed layout below changes. */
#define INVAR_CPU_ABI 1

/* Columns in a panel of mm, and in a panel of packed weights. */
#define INVAR_CPU_PANEL 64

enum invar_cpu_status {
  INVAR_CPU_OK = 0,
  INVAR_CPU_BAD_SIZE = 1,    /* a negative size, or one whose product overflows */
  INVAR_CPU_BAD_DTYPE = 2,   /* not one of invar_cpu_dtype, or not allowed here */
  INVAR_CPU_BAD_RANGE = 3,   /* not 0 <= begin <= end <= panels or rows */
  INVAR_CPU_BAD_POINTER = 4, /* NULL with elements behind it */
  INVAR_CPU_BAD_SCRATCH = 5, /* scratch is NULL or smaller than was asked for */
  INVAR_CPU_BAD_ISA = 6,     /* level unknown or not available on this machine */
};

enum invar_cpu_dtype {
  INVAR_CPU_FLOAT32 = 0,
  INVAR_CPU_BFLOAT16 = 1,
  INVAR_CPU_FLOAT16 = 2,
};

/* ---- What this library is ------------------------------------------------ */

/* The INVAR_CPU_ABI that the library was built with. */
INVAR_CPU_API int32_t invar_cpu_abi_version(void);

/* Name and version of the numerical contract, as "invar-cpu-fp32/1". Two
 * libraries with the same string give the same bits. */
INVAR_CPU_API const char *invar_cpu_contract(void);

/* The version of the run package that the library was built for, as "0.1.0". */
INVAR_CPU_API const char *invar_cpu_version(void);

/* A sentence for a status code; never NULL. */
INVAR_CPU_API const char *invar_cpu_status_text(int32_t status);

/* The operators that the library holds, by index; NULL past the end. */
INVAR_CPU_API int32_t invar_cpu_operator_count(void);
INVAR_CPU_API const char *invar_cpu_operator_name(int32_t index);

/* ---- Instruction set levels ---------------------------------------------- */

/* The levels that the library was built with, slowest first, by index; NULL past
 * the end. x86_64: "baseline", "avx2", "avx512"; aarch64: "baseline", "neon". */
INVAR_CPU_API int32_t invar_cpu_isa_count(void);
INVAR_CPU_API const char *invar_cpu_isa_name(int32_t index);

/* 1 when this machine and its kernel can run the level, else 0. */
INVAR_CPU_API int32_t invar_cpu_isa_available(int32_t index);

/* The level in use. It is chosen once, at the first call that needs it: the one
 * that the environment variable INVAR_CPU_ISA names, else the last available.
 * NULL when that variable names a level that is unknown or not available: every
 * operator then returns INVAR_CPU_BAD_ISA; there is no silent fallback. */
INVAR_CPU_API const char *invar_cpu_isa_current(void);

/* Makes a level current for all threads, so that one process can compare them.
 * NULL goes back to the choice described above. A level that is unknown or not
 * available gives INVAR_CPU_BAD_ISA and changes nothing. */
INVAR_CPU_API int32_t invar_cpu_isa_select(const char *name);

/* ---- Operands ------------------------------------------------------------ */

/* A matrix that is read. Element (i, j) lies at data + i*row + j*col. */
typedef struct invar_cpu_in {
  const void *data;
  int64_t row; /* stride between rows, in elements */
  int64_t col; /* stride between columns, in elements */
  int32_t dtype;
  int32_t reserved; /* zero */
} invar_cpu_in;

/* A matrix that is written. No two elements may share memory. */
typedef struct invar_cpu_out {
  void *data;
  int64_t row;
  int64_t col;
  int32_t dtype;
  int32_t reserved; /* zero */
} invar_cpu_out;

/* ---- mm: out[m,n] = alpha * (a[m,k] . b[k,n]) + beta * c[m,n] -------------- */

typedef struct invar_cpu_mm_args {
  int64_t m, n, k;
  invar_cpu_in a;  /* m rows, k columns */
  invar_cpu_in b;  /* k rows, n columns: row is the step along k, col along n. A
                      weight [n,k] of a linear layer is row = 1, col = k. With
                      b_packed, data is what pack wrote for this n and k (all
                      panels), and row and col are not looked at. */
  invar_cpu_in c;  /* m rows, n columns, any strides: a bias has row = 0. Absent
                      when data is NULL; not read when beta is zero. */
  invar_cpu_out out; /* m rows, n columns */
  float alpha;
  float beta;
  int32_t b_packed; /* 0 or 1 */
  int32_t reserved; /* zero */
} invar_cpu_mm_args;

/* The four dtypes are free of each other. Panels hold 64 columns of out, the
 * last may hold fewer.
 *
 * A caller that wants to split rows moves a, c and out and lowers m. One with a
 * small n and a large m (mv) may compute out transposed, with a and b in each
 * other's place: the bits are the same. bmm is one call a batch element; dot is
 * m = n = 1.
 *
 * Panels of n columns: (n + 63) / 64; -1 when n is negative. */
INVAR_CPU_API int64_t invar_cpu_mm_panels(int64_t n);

/* Bytes of scratch that one running invar_cpu_mm call with these arguments needs
 * (any range; under 1 MiB whatever the sizes), or -1 when they are not legal.
 * Pointers in args are not looked at. */
INVAR_CPU_API int64_t invar_cpu_mm_scratch(const invar_cpu_mm_args *args);

/* Computes the panels [panel_begin, panel_end). */
INVAR_CPU_API int32_t invar_cpu_mm(const invar_cpu_mm_args *args, int64_t panel_begin,
                                   int64_t panel_end, void *scratch, int64_t scratch_size);

/* ---- pack: b once, for many mm ------------------------------------------- */

/* Elements (of b's dtype) that the packed form of b[k,n] takes: panels * k * 64;
 * -1 when a size is negative or the product overflows. */
INVAR_CPU_API int64_t invar_cpu_packed_elements(int64_t n, int64_t k);

/* Writes the panels [panel_begin, panel_end) of the packed form of b (k rows, n
 * columns) into packed, the start of the whole buffer: panel p, row i, column j
 * of the panel at (p*k + i)*64 + j, zeros past column n, in b's own dtype. */
INVAR_CPU_API int32_t invar_cpu_pack(const invar_cpu_in *b, int64_t n, int64_t k, void *packed,
                                     int64_t panel_begin, int64_t panel_end);

/* ---- Row operators ------------------------------------------------------- */

/* sum, mean: out has one column. softmax, log_softmax: out is as x. A reduction
 * along another dimension is a matter of strides. The dtype of out is free. */
typedef struct invar_cpu_row_args {
  int64_t rows, cols;
  invar_cpu_in x;    /* rows x cols */
  invar_cpu_out out; /* rows x cols, or rows x 1 (col not looked at) */
} invar_cpu_row_args;

/* Bytes of scratch that one running call of any of the four needs (any range),
 * or -1 when the arguments are not legal. About 4 bytes a column, or 256 KiB
 * where that is more; zero for float32 rows without gaps. Pointers are not
 * looked at. */
INVAR_CPU_API int64_t invar_cpu_row_scratch(const invar_cpu_row_args *args);

INVAR_CPU_API int32_t invar_cpu_sum(const invar_cpu_row_args *args, int64_t row_begin,
                                    int64_t row_end, void *scratch, int64_t scratch_size);
INVAR_CPU_API int32_t invar_cpu_mean(const invar_cpu_row_args *args, int64_t row_begin,
                                     int64_t row_end, void *scratch, int64_t scratch_size);
INVAR_CPU_API int32_t invar_cpu_softmax(const invar_cpu_row_args *args, int64_t row_begin,
                                        int64_t row_end, void *scratch, int64_t scratch_size);
INVAR_CPU_API int32_t invar_cpu_log_softmax(const invar_cpu_row_args *args, int64_t row_begin,
                                            int64_t row_end, void *scratch, int64_t scratch_size);

/* rms_norm: out = x / sqrt(mean(x*x) + eps) * weight.
 * add_rms_norm: residual_out = x + residual, then rms_norm of residual_out. */
typedef struct invar_cpu_norm_args {
  int64_t rows, cols;
  invar_cpu_in x;             /* rows x cols */
  invar_cpu_in residual;      /* rows x cols; add_rms_norm only */
  invar_cpu_in weight;        /* cols elements, col apart, row not looked at; data
                                 NULL means no weight */
  invar_cpu_out out;          /* rows x cols */
  invar_cpu_out residual_out; /* rows x cols; add_rms_norm only */
  float eps;
  int32_t reserved; /* zero */
} invar_cpu_norm_args;

/* As invar_cpu_row_scratch, for both norms: up to three times as much, and never
 * zero. */
INVAR_CPU_API int64_t invar_cpu_norm_scratch(const invar_cpu_norm_args *args);

INVAR_CPU_API int32_t invar_cpu_rms_norm(const invar_cpu_norm_args *args, int64_t row_begin,
                                         int64_t row_end, void *scratch, int64_t scratch_size);
INVAR_CPU_API int32_t invar_cpu_add_rms_norm(const invar_cpu_norm_args *args, int64_t row_begin,
                                             int64_t row_end, void *scratch,
                                             int64_t scratch_size);

/* ---- Negative control ---------------------------------------------------- */

/* A matrix product that breaks the contract on purpose: it splits k into
 * 1 + m mod 13 slices and adds the slices up, so the bits of a row follow the
 * number of rows beside it. A proof of batch invariance that does not fail on it
 * proves nothing. Never route an operator to it. It takes the arguments of
 * invar_cpu_mm with b_packed = 0, needs no scratch, and computes everything. */
INVAR_CPU_API int32_t invar_cpu_control_mm(const invar_cpu_mm_args *args);

#ifdef __cplusplus
}
#endif

#endif
