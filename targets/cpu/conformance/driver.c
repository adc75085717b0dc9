/*
 * Runs a file of cases through libinvar_cpu and writes what came out.
 *
 *   driver LEVEL plain|hostile CASES RESULTS
 *
 * CASES is a run of cases, each: the struct header below in the machine's byte order
 * (little-endian on all targets), then the bytes of every operand that has some. The
 * bytes of an output are what its memory holds before the call. RESULTS gets the
 * bytes of both outputs of each case after it.
 *
 * hostile: three threads with three settings of the floating-point control register
 * share the ranges; plain: one thread with the default. In both, the register must
 * hold after a call what it held before.
 *
 * Exit codes: 0 done, 1 a call failed or changed the register, 2 usage or files.
 */
#define _POSIX_C_SOURCE 200809L

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fpcontrol.h"
#include "invar_cpu.h"

enum { OP_MM, OP_PACK, OP_SUM, OP_MEAN, OP_SOFTMAX, OP_LOG_SOFTMAX, OP_RMS, OP_ADD_RMS, OP_CONTROL };
enum { OPERANDS = 5, THREADS = 3 };

struct operand {
  int64_t dtype, row, col;
  int64_t offset; /* bytes from the start to element (0, 0) */
  int64_t bytes;  /* -1: there is no such operand, its pointer is NULL */
};

struct header {
  int64_t op, m, n, k;
  int64_t packed;      /* mm: b goes through pack. Others: the outputs are the inputs' memory */
  int64_t alpha, beta; /* floats as bits; beta is eps of the norms */
  int64_t piece; /* longest range given to one call; 0: everything at once */
  struct operand operands[OPERANDS];
};

struct job {
  struct header h;
  char *memory[OPERANDS];
  void *packed;
  int64_t size; /* panels or rows */
  int64_t pieces;
  int64_t next; /* taken from the end, so that order matters if it can */
  int hostile;
  int64_t number;
};

static void fail(const char *what, int64_t number, const char *why) {
  fprintf(stderr, "driver: case %" PRId64 ": %s: %s\n", number, what, why);
  exit(1);
}

static void *element_zero(const struct job *j, int i) {
  const struct operand *o = &j->h.operands[i];
  return o->bytes < 0 ? NULL : j->memory[i] + o->offset;
}

static invar_cpu_in in(const struct job *j, int i) {
  const struct operand *o = &j->h.operands[i];
  invar_cpu_in x = {element_zero(j, i), o->row, o->col, (int32_t)o->dtype, 0};
  return x;
}

static invar_cpu_out out(const struct job *j, int i) {
  const struct operand *o = &j->h.operands[i];
  invar_cpu_out x = {element_zero(j, i), o->row, o->col, (int32_t)o->dtype, 0};
  return x;
}

static float float_of(int64_t bits) {
  uint32_t u = (uint32_t)bits;
  float f;
  memcpy(&f, &u, 4);
  return f;
}

static invar_cpu_mm_args mm_args(const struct job *j) {
  const struct header *h = &j->h;
  invar_cpu_mm_args g = {h->m, h->n, h->k, in(j, 0), in(j, 1), in(j, 2), out(j, 3),
                         float_of(h->alpha), float_of(h->beta), (int32_t)h->packed, 0};
  if (h->packed) {
    g.b.data = j->packed;
    g.b.row = g.b.col = 0;
  }
  return g;
}

static invar_cpu_row_args row_args(const struct job *j) {
  invar_cpu_row_args g = {j->h.m, j->h.n, in(j, 0), out(j, 3)};
  return g;
}

static invar_cpu_norm_args norm_args(const struct job *j) {
  invar_cpu_norm_args g = {j->h.m, j->h.n, in(j, 0), in(j, 1), in(j, 2), out(j, 3), out(j, 4),
                           float_of(j->h.beta), 0};
  return g;
}

static int64_t scratch_size(const struct job *j) {
  invar_cpu_mm_args mm = mm_args(j);
  invar_cpu_row_args row = row_args(j);
  invar_cpu_norm_args norm = norm_args(j);
  switch (j->h.op) {
    case OP_MM: return invar_cpu_mm_scratch(&mm);
    case OP_SUM: case OP_MEAN: case OP_SOFTMAX: case OP_LOG_SOFTMAX:
      return invar_cpu_row_scratch(&row);
    case OP_RMS: case OP_ADD_RMS: return invar_cpu_norm_scratch(&norm);
  }
  return 0;
}

static int32_t call(const struct job *j, int64_t from, int64_t to, void *s, int64_t size) {
  invar_cpu_mm_args mm = mm_args(j);
  invar_cpu_row_args row = row_args(j);
  invar_cpu_norm_args norm = norm_args(j);
  invar_cpu_in b = in(j, 1);
  switch (j->h.op) {
    case OP_MM: return invar_cpu_mm(&mm, from, to, s, size);
    case OP_PACK: return invar_cpu_pack(&b, j->h.n, j->h.k, element_zero(j, 3), from, to);
    case OP_SUM: return invar_cpu_sum(&row, from, to, s, size);
    case OP_MEAN: return invar_cpu_mean(&row, from, to, s, size);
    case OP_SOFTMAX: return invar_cpu_softmax(&row, from, to, s, size);
    case OP_LOG_SOFTMAX: return invar_cpu_log_softmax(&row, from, to, s, size);
    case OP_RMS: return invar_cpu_rms_norm(&norm, from, to, s, size);
    case OP_ADD_RMS: return invar_cpu_add_rms_norm(&norm, from, to, s, size);
    case OP_CONTROL: return invar_cpu_control_mm(&mm);
  }
  return -1;
}

static void *work(void *arg) {
  struct job *j = arg;
  int64_t size = scratch_size(j), i;
  if (size < 0) fail("scratch size", j->number, "-1");
  /* One guard byte: scratch must stay inside what was asked for. */
  unsigned char *scratch = malloc((size_t)size + 2);
  scratch[0] = scratch[size + 1] = 0xa5;
  while ((i = __atomic_sub_fetch(&j->next, 1, __ATOMIC_SEQ_CST)) >= 0) {
    int64_t step = j->pieces ? (j->size + j->pieces - 1) / j->pieces : 0;
    int64_t from = i * step, to = from + step < j->size ? from + step : j->size;
    if (from > to) from = to;
    uint64_t before = fp_get();
    int32_t status = call(j, from, to, size ? scratch + 1 : NULL, size);
    uint64_t after = fp_get();
    if (before != after) fail("floating-point control register", j->number, "not restored");
    if (status != INVAR_CPU_OK) fail("call", j->number, invar_cpu_status_text(status));
  }
  if (scratch[0] != 0xa5 || scratch[size + 1] != 0xa5) fail("scratch", j->number, "overrun");
  free(scratch);
  return NULL;
}

struct seat {
  struct job *job;
  uint64_t state;
};

static void *hostile_work(void *arg) {
  struct seat *s = arg;
  fp_set(s->state);
  work(s->job);
  return NULL;
}

static void run(struct job *j) {
  const struct header *h = &j->h;
  int by_panel = h->op == OP_MM || h->op == OP_PACK;
  j->size = by_panel ? invar_cpu_mm_panels(h->n) : h->m;
  j->pieces = h->piece > 0 && j->size > 0 ? (j->size + h->piece - 1) / h->piece : 1;
  if (h->op == OP_CONTROL) j->pieces = 1;
  j->next = j->pieces;
  if (!j->hostile) {
    work(j);
    return;
  }
  pthread_t threads[THREADS];
  struct seat seats[THREADS];
  for (int t = 0; t < THREADS; t++) {
    seats[t] = (struct seat){j, fp_hostile[t]};
    if (pthread_create(&threads[t], NULL, hostile_work, &seats[t])) fail("thread", j->number, "not started");
  }
  for (int t = 0; t < THREADS; t++) pthread_join(threads[t], NULL);
}

/* Packs b for a packed mm. */
static void *pack(const struct job *j) {
  invar_cpu_in b = in(j, 1);
  int64_t size = b.dtype == INVAR_CPU_FLOAT32 ? 4 : 2;
  char *memory = malloc((size_t)(invar_cpu_packed_elements(j->h.n, j->h.k) * size) + 1);
  int32_t status = invar_cpu_pack(&b, j->h.n, j->h.k, memory, 0, invar_cpu_mm_panels(j->h.n));
  if (status != INVAR_CPU_OK) fail("pack", j->number, invar_cpu_status_text(status));
  return memory;
}

static char *read_operand(FILE *f, int64_t bytes) {
  void *p = NULL; /* exactly as large as the operand, so that a sanitizer sees any step past it */
  if (posix_memalign(&p, 64, bytes > 0 ? (size_t)bytes : 1) ||
      (bytes > 0 && fread(p, 1, (size_t)bytes, f) != (size_t)bytes)) {
    fprintf(stderr, "driver: cases end in the middle of an operand\n");
    exit(2);
  }
  return p;
}

static int run_cases(FILE *cases, FILE *results, int hostile) {
  struct job j;
  memset(&j, 0, sizeof j);
  j.hostile = hostile;
  for (; fread(&j.h, sizeof j.h, 1, cases) == 1; j.number++) {
    for (int i = 0; i < OPERANDS; i++) j.memory[i] = read_operand(cases, j.h.operands[i].bytes);
    int in_place = j.h.packed && j.h.op != OP_MM;
    for (int i = 0; in_place && i < 2; i++) {
      free(j.memory[3 + i]);
      j.memory[3 + i] = j.memory[i];
    }
    j.packed = j.h.op == OP_MM && j.h.packed ? pack(&j) : NULL;
    run(&j);
    for (int i = 3; i < OPERANDS; i++) {
      size_t bytes = j.h.operands[i].bytes < 0 ? 0 : (size_t)j.h.operands[i].bytes;
      if (fwrite(j.memory[i], 1, bytes, results) != bytes) return 2;
    }
    for (int i = 0; i < (in_place ? 3 : OPERANDS); i++) free(j.memory[i]);
    free(j.packed);
  }
  return 0;
}

int main(int argc, char **argv) {
  if (argc != 5 || (strcmp(argv[2], "plain") && strcmp(argv[2], "hostile"))) {
    fprintf(stderr, "usage: driver LEVEL plain|hostile CASES RESULTS\n");
    return 2;
  }
  if (invar_cpu_isa_select(argv[1]) != INVAR_CPU_OK) {
    fprintf(stderr, "driver: level %s is unknown or not available here\n", argv[1]);
    return 1;
  }
  FILE *cases = fopen(argv[3], "rb"), *results = fopen(argv[4], "wb");
  if (!cases || !results) {
    perror("driver");
    return 2;
  }
  int code = run_cases(cases, results, !strcmp(argv[2], "hostile"));
  if (fclose(results)) code = 2;
  fclose(cases);
  return code;
}
