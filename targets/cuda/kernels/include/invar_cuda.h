/*
 * invar_cuda.h: the C ABI of libinvar_cuda.so, stage 1 of the CUDA target.
 *
 * What the functions compute, to the bit, is docs/contract-cuda.md. This header
 * says how they are called.
 *
 * Units and shapes
 *   Sizes are counts of elements (int64_t). Strides are in elements too, may be
 *   zero (broadcast, inputs only) or negative. Every size may be zero. Workspace
 *   sizes are in bytes.
 *
 * Pointers
 *   Operands and workspace are memory of the current device, or memory that it
 *   can reach. An operand is aligned to its own element; 16 bytes are fastest and
 *   give the same bits. A pointer may be NULL only where no element is behind it
 *   or where a comment says so. Outputs must not overlap inputs, except that out
 *   may be the same matrix (same pointer, strides, dtype) as x in the row
 *   operators other than sum and mean, and residual_out the same as residual.
 *
 * Streams and devices
 *   Work is queued on `stream` (a cudaStream_t; NULL is the legacy default
 *   stream) of the current device, which the caller has set. No function waits
 *   for the device, allocates device memory or sets the current device. Argument
 *   structures are read before the function returns. The first call on a device
 *   loads the kernels there; invar_cuda_prepare does it ahead of time. All calls
 *   may be captured into a CUDA graph and made from any thread.
 *
 * Errors
 *   Functions that return int32_t give INVAR_CUDA_OK or one of the codes below,
 *   and then have queued nothing that writes. A status of INVAR_CUDA_RUNTIME or
 *   more is INVAR_CUDA_RUNTIME + a cudaError_t.
 */
#ifndef INVAR_CUDA_H
#define INVAR_CUDA_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(INVAR_CUDA_BUILD)
#define INVAR_CUDA_API __attribute__((visibility("default")))
#else
#define INVAR_CUDA_API
#endif

/* Raised whenever a declaration or the packed layout below changes. */
#define INVAR_CUDA_ABI 1

/* Columns in a panel of packed weights. */
#define INVAR_CUDA_PANEL 64

/* Batch dimensions of mm. */
#define INVAR_CUDA_BATCH_DIMS 4

enum invar_cuda_status {
  INVAR_CUDA_OK = 0,
  INVAR_CUDA_BAD_SIZE = 1,      /* a negative size, or one whose product overflows */
  INVAR_CUDA_BAD_DTYPE = 2,     /* not one of invar_cuda_dtype, or not allowed here */
  INVAR_CUDA_BAD_VARIANT = 3,   /* no such variant for these arguments */
  INVAR_CUDA_BAD_POINTER = 4,   /* NULL with elements behind it, or not aligned to its element */
  INVAR_CUDA_BAD_WORKSPACE = 5, /* workspace is NULL, too small or not at a multiple of 16 bytes */
  INVAR_CUDA_NO_KERNEL = 6,     /* this library has no code for the current device */
  INVAR_CUDA_RUNTIME = 1000,    /* + cudaError_t */
};

/* The numbers of invar_cpu.h. */
enum invar_cuda_dtype {
  INVAR_CUDA_FLOAT32 = 0,
  INVAR_CUDA_BFLOAT16 = 1,
  INVAR_CUDA_FLOAT16 = 2,
};

/* ---- What this library is ------------------------------------------------ */

/* The INVAR_CUDA_ABI that the library was built with. */
INVAR_CUDA_API int32_t invar_cuda_abi_version(void);

/* Name and version of the numerical contract, as "invar-cuda-fp32/1". */
INVAR_CUDA_API const char *invar_cuda_contract(void);

/* The version of the run package that the library was built for, as "0.1.0". */
INVAR_CUDA_API const char *invar_cuda_version(void);

/* The architectures that it holds code for, as "sm_80 sm_90 sm_120". */
INVAR_CUDA_API const char *invar_cuda_arches(void);

/* A sentence for a status; never NULL. For a CUDA error its name and text. */
INVAR_CUDA_API const char *invar_cuda_status_text(int32_t status);

/* The operators that the library holds, by index; NULL past the end. */
INVAR_CUDA_API int32_t invar_cuda_operator_count(void);
INVAR_CUDA_API const char *invar_cuda_operator_name(int32_t index);

/* Loads all kernels onto the current device. Not needed, but a caller that
 * measures or captures may want it done. */
INVAR_CUDA_API int32_t invar_cuda_prepare(void);

/* ---- Operands ------------------------------------------------------------ */

/* A matrix that is read. Element (i, j) lies at data + i*row + j*col. */
typedef struct invar_cuda_in {
  const void *data;
  int64_t row; /* stride between rows, in elements */
  int64_t col; /* stride between columns, in elements */
  int32_t dtype;
  int32_t reserved; /* zero */
} invar_cuda_in;

/* A matrix that is written. No two elements may share memory. */
typedef struct invar_cuda_out {
  void *data;
  int64_t row;
  int64_t col;
  int32_t dtype;
  int32_t reserved; /* zero */
} invar_cuda_out;

/* ---- mm: out[m,n] = alpha * (a[m,k] . b[k,n]) + beta * c[m,n] -------------- */

/* A batch dimension: its size and the step of each operand along it. */
typedef struct invar_cuda_batch {
  int64_t size;
  int64_t a, b, c, out;
} invar_cuda_batch;

typedef struct invar_cuda_mm_args {
  int64_t m, n, k;
  invar_cuda_in a; /* m rows, k columns; a and b have one dtype */
  invar_cuda_in b; /* k rows, n columns: row is the step along k, col along n. A
                      weight [n,k] of a linear layer is row = 1, col = k. */
  invar_cuda_in c; /* m rows, n columns, any strides and dtype: a bias has row = 0.
                      Absent when data is NULL; not read when beta is zero. */
  invar_cuda_out out; /* m rows, n columns, any strides and dtype */
  invar_cuda_batch batch[INVAR_CUDA_BATCH_DIMS]; /* outermost first; size 1 where not used */
  float alpha;
  float beta;
  int32_t variant; /* 0: the library chooses. 1 + an index of invar_cuda_mm_variant_name
                      forces one; all give the same bits. */
  int32_t reserved; /* zero */
} invar_cuda_mm_args;

/* The variants for a dtype, by index; NULL past the end. A variant is a tile, and
 * "split" where the chunks of k are spread over blocks. */
INVAR_CUDA_API const char *invar_cuda_mm_variant_name(int32_t dtype, int32_t index);

/* Bytes of workspace that invar_cuda_mm needs for these arguments (their variant
 * included), or -1 when they are not legal. Pointers are looked at only for their
 * alignment. */
INVAR_CUDA_API int64_t invar_cuda_mm_workspace(const invar_cuda_mm_args *args);

INVAR_CUDA_API int32_t invar_cuda_mm(const invar_cuda_mm_args *args, void *workspace,
                                     int64_t workspace_size, void *stream);

/* ---- pack: b by panels, as invar_cpu_pack writes it ------------------------ */

/* Elements that the packed form of b[k,n] takes: panels * k * 64; -1 when a size
 * is negative or the product overflows. */
INVAR_CUDA_API int64_t invar_cuda_packed_elements(int64_t n, int64_t k);

/* Writes b (k rows, n columns): panel p, row i, column j of the panel at
 * (p*k + i)*64 + j, zeros past column n, in b's own dtype. A packed b is an mm with
 * n = 64 and panels as a batch: b.row = 64, b.col = 1, batch step k*64. */
INVAR_CUDA_API int32_t invar_cuda_pack(const invar_cuda_in *b, int64_t n, int64_t k, void *packed,
                                       void *stream);

/* ---- Row operators ------------------------------------------------------- */

/* sum, mean: out has one column. softmax, log_softmax: out is as x. */
typedef struct invar_cuda_row_args {
  int64_t rows, cols;
  invar_cuda_in x;    /* rows x cols */
  invar_cuda_out out; /* rows x cols, or rows x 1 (col not looked at) */
  int32_t variant;    /* 0: the library chooses; else 1 + an index of
                         invar_cuda_row_variant_name, same bits */
  int32_t reserved;   /* zero */
} invar_cuda_row_args;

/* The variants of row operators and norms, by index; NULL past the end. A variant
 * that these sizes do not allow gives INVAR_CUDA_BAD_VARIANT. */
INVAR_CUDA_API const char *invar_cuda_row_variant_name(int32_t index);

/* Bytes of workspace for any of the four, or -1 when args are not legal. */
INVAR_CUDA_API int64_t invar_cuda_row_workspace(const invar_cuda_row_args *args);

INVAR_CUDA_API int32_t invar_cuda_sum(const invar_cuda_row_args *args, void *workspace,
                                      int64_t workspace_size, void *stream);
INVAR_CUDA_API int32_t invar_cuda_mean(const invar_cuda_row_args *args, void *workspace,
                                       int64_t workspace_size, void *stream);
INVAR_CUDA_API int32_t invar_cuda_softmax(const invar_cuda_row_args *args, void *workspace,
                                          int64_t workspace_size, void *stream);
INVAR_CUDA_API int32_t invar_cuda_log_softmax(const invar_cuda_row_args *args, void *workspace,
                                              int64_t workspace_size, void *stream);

/* rms_norm: out = x / sqrt(mean(x*x) + eps) * weight.
 * add_rms_norm: residual_out = x + residual, then rms_norm of residual_out. */
typedef struct invar_cuda_norm_args {
  int64_t rows, cols;
  invar_cuda_in x;             /* rows x cols */
  invar_cuda_in residual;      /* rows x cols; add_rms_norm only */
  invar_cuda_in weight;        /* cols elements, col apart; data NULL: no weight */
  invar_cuda_out out;          /* rows x cols */
  invar_cuda_out residual_out; /* rows x cols; add_rms_norm only */
  float eps;
  int32_t variant; /* as in invar_cuda_row_args; "split" is not one of them */
} invar_cuda_norm_args;

/* No workspace. */
INVAR_CUDA_API int32_t invar_cuda_rms_norm(const invar_cuda_norm_args *args, void *stream);
INVAR_CUDA_API int32_t invar_cuda_add_rms_norm(const invar_cuda_norm_args *args, void *stream);

/* ---- Negative control ---------------------------------------------------- */

/* A matrix product that breaks the contract on purpose: it splits k into
 * 1 + m mod 13 slices and adds the slices up, so the bits of a row follow the
 * number of rows beside it. A proof of batch invariance that does not fail on it
 * proves nothing. Never route an operator to it. Arguments of invar_cuda_mm with
 * variant = 0, no workspace. */
INVAR_CUDA_API int32_t invar_cuda_control_mm(const invar_cuda_mm_args *args, void *stream);

#ifdef __cplusplus
}
#endif

#endif
