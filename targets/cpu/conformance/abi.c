/*
 * What libinvar_cpu says and refuses: names, levels, sizes, and a status for each kind
 * of bad argument. Prints one line for each thing that is not as the header says.
 *
 *   abi            the checks; exit 1 when one is not met
 *   abi levels     the levels that this machine can run, one a line
 *   abi version    the version of the library
 *   abi current    the level in use, or "refused", and the status of a call
 */
#include <stdio.h>
#include <string.h>

#include "invar_cpu.h"

static int failures;

static void check(int ok, const char *text, int line) {
  if (ok) return;
  fprintf(stderr, "abi: line %d: not so: %s\n", line, text);
  failures++;
}
#define CHECK(x) check((x), #x, __LINE__)

static float values[64];
static char scratch[1 << 20];

static invar_cpu_mm_args small_mm(void) {
  invar_cpu_mm_args g;
  memset(&g, 0, sizeof g);
  g.m = g.n = g.k = 2;
  g.a.data = g.b.data = values;
  g.a.row = g.b.row = 2;
  g.a.col = g.b.col = 1;
  g.out.data = values + 32;
  g.out.row = 2;
  g.out.col = 1;
  g.alpha = 1;
  return g;
}

static int32_t run_mm(invar_cpu_mm_args g) {
  return invar_cpu_mm(&g, 0, invar_cpu_mm_panels(g.n), scratch, sizeof scratch);
}

static void check_names(void) {
  CHECK(invar_cpu_abi_version() == INVAR_CPU_ABI);
  CHECK(strlen(invar_cpu_contract()) > 0);
  CHECK(strlen(invar_cpu_version()) > 0);
  CHECK(invar_cpu_operator_count() > 0);
  CHECK(invar_cpu_operator_name(-1) == NULL);
  CHECK(invar_cpu_operator_name(invar_cpu_operator_count()) == NULL);
  for (int32_t i = 0; i < invar_cpu_operator_count(); i++) CHECK(invar_cpu_operator_name(i) != NULL);
  for (int32_t i = -1; i < 9; i++) CHECK(invar_cpu_status_text(i) != NULL);
}

static void check_levels(void) {
  CHECK(invar_cpu_isa_count() >= 1);
  CHECK(!strcmp(invar_cpu_isa_name(0), "baseline"));
  CHECK(invar_cpu_isa_available(0) == 1);
  CHECK(invar_cpu_isa_name(-1) == NULL && invar_cpu_isa_name(invar_cpu_isa_count()) == NULL);
  CHECK(invar_cpu_isa_available(-1) == 0 && invar_cpu_isa_available(99) == 0);
  const char *first = invar_cpu_isa_current();
  CHECK(first != NULL);
  for (int32_t i = 0; i < invar_cpu_isa_count(); i++) {
    int32_t want = invar_cpu_isa_available(i) ? INVAR_CPU_OK : INVAR_CPU_BAD_ISA;
    CHECK(invar_cpu_isa_select(invar_cpu_isa_name(i)) == want);
    if (want == INVAR_CPU_OK) CHECK(!strcmp(invar_cpu_isa_current(), invar_cpu_isa_name(i)));
  }
  CHECK(invar_cpu_isa_select("baseline") == INVAR_CPU_OK);
  CHECK(invar_cpu_isa_select("avx1024") == INVAR_CPU_BAD_ISA);
  CHECK(invar_cpu_isa_select("") == INVAR_CPU_BAD_ISA);
  CHECK(!strcmp(invar_cpu_isa_current(), "baseline"));
  CHECK(invar_cpu_isa_select(NULL) == INVAR_CPU_OK);
  CHECK(!strcmp(invar_cpu_isa_current(), first));
}

static void check_sizes(void) {
  CHECK(invar_cpu_mm_panels(0) == 0 && invar_cpu_mm_panels(1) == 1);
  CHECK(invar_cpu_mm_panels(64) == 1 && invar_cpu_mm_panels(65) == 2);
  CHECK(invar_cpu_mm_panels(-1) == -1 && invar_cpu_mm_panels(INT64_MAX) == -1);
  CHECK(invar_cpu_packed_elements(65, 3) == 2 * 64 * 3);
  CHECK(invar_cpu_packed_elements(0, 3) == 0 && invar_cpu_packed_elements(3, 0) == 0);
  CHECK(invar_cpu_packed_elements(-1, 3) == -1 && invar_cpu_packed_elements(3, -1) == -1);
  CHECK(invar_cpu_packed_elements(INT64_MAX / 2, 3) == -1);
  CHECK(invar_cpu_packed_elements((int64_t)1 << 40, (int64_t)1 << 40) == -1);
  invar_cpu_mm_args g = small_mm();
  static const int64_t many[] = {0, 1, 6, 7, 100, 1000, 100000, (int64_t)1 << 40};
  for (int m = 0; m < 8; m++) {
    for (int k = 0; k < 8; k++) {
      g.m = many[m], g.k = many[k], g.a.dtype = INVAR_CPU_BFLOAT16;
      CHECK(invar_cpu_mm_scratch(&g) > 0 && invar_cpu_mm_scratch(&g) < 1 << 20);
    }
  }
  CHECK(invar_cpu_mm_scratch(NULL) == -1 && invar_cpu_row_scratch(NULL) == -1);
  CHECK(invar_cpu_norm_scratch(NULL) == -1);
}

static void check_mm_refusals(void) {
  invar_cpu_mm_args g = small_mm();
  CHECK(run_mm(g) == INVAR_CPU_OK);
  CHECK(invar_cpu_mm(NULL, 0, 0, scratch, sizeof scratch) == INVAR_CPU_BAD_POINTER);
  CHECK(invar_cpu_mm(&g, 0, 1, NULL, 0) == INVAR_CPU_BAD_SCRATCH);
  CHECK(invar_cpu_mm(&g, 0, 1, scratch, invar_cpu_mm_scratch(&g) - 1) == INVAR_CPU_BAD_SCRATCH);
  CHECK(invar_cpu_mm(&g, 0, 2, scratch, sizeof scratch) == INVAR_CPU_BAD_RANGE);
  CHECK(invar_cpu_mm(&g, -1, 1, scratch, sizeof scratch) == INVAR_CPU_BAD_RANGE);
  CHECK(invar_cpu_mm(&g, 1, 0, scratch, sizeof scratch) == INVAR_CPU_BAD_RANGE);
  CHECK(invar_cpu_mm(&g, 1, 1, scratch, sizeof scratch) == INVAR_CPU_OK);
  g = small_mm(), g.m = -1;
  CHECK(run_mm(g) == INVAR_CPU_BAD_SIZE && invar_cpu_mm_scratch(&g) == -1);
  g = small_mm(), g.k = -1;
  CHECK(run_mm(g) == INVAR_CPU_BAD_SIZE);
  g = small_mm(), g.b.dtype = 3;
  CHECK(run_mm(g) == INVAR_CPU_BAD_DTYPE);
  g = small_mm(), g.out.dtype = -1;
  CHECK(run_mm(g) == INVAR_CPU_BAD_DTYPE);
  g = small_mm(), g.c.dtype = 9;
  CHECK(run_mm(g) == INVAR_CPU_OK); /* absent */
  g.c.data = values;
  CHECK(run_mm(g) == INVAR_CPU_BAD_DTYPE);
  g = small_mm(), g.a.data = NULL;
  CHECK(run_mm(g) == INVAR_CPU_BAD_POINTER);
  g = small_mm(), g.out.data = NULL;
  CHECK(run_mm(g) == INVAR_CPU_BAD_POINTER);
  g.m = 0;
  CHECK(run_mm(g) == INVAR_CPU_OK);
  g = small_mm(), g.k = 0, g.a.data = g.b.data = NULL;
  CHECK(run_mm(g) == INVAR_CPU_OK);
  g = small_mm(), g.b_packed = 1;
  CHECK(invar_cpu_control_mm(&g) != INVAR_CPU_OK);
  CHECK(invar_cpu_pack(&g.b, 2, 2, NULL, 0, 1) == INVAR_CPU_BAD_POINTER);
  CHECK(invar_cpu_pack(&g.b, 2, 2, scratch, 0, 2) == INVAR_CPU_BAD_RANGE);
  CHECK(invar_cpu_pack(&g.b, -2, 2, scratch, 0, 0) == INVAR_CPU_BAD_SIZE);
}

static void check_row_refusals(void) {
  invar_cpu_row_args g = {2, 4, {values, 4, 1, INVAR_CPU_FLOAT32, 0},
                          {values + 32, 4, 1, INVAR_CPU_FLOAT32, 0}};
  CHECK(invar_cpu_row_scratch(&g) == 0);
  CHECK(invar_cpu_softmax(&g, 0, 2, NULL, 0) == INVAR_CPU_OK);
  CHECK(invar_cpu_softmax(&g, 0, 3, NULL, 0) == INVAR_CPU_BAD_RANGE);
  CHECK(invar_cpu_sum(NULL, 0, 0, NULL, 0) == INVAR_CPU_BAD_POINTER);
  g.x.col = 2;
  CHECK(invar_cpu_row_scratch(&g) > 0);
  CHECK(invar_cpu_log_softmax(&g, 0, 2, NULL, 0) == INVAR_CPU_BAD_SCRATCH);
  g.x.dtype = 7;
  CHECK(invar_cpu_mean(&g, 0, 2, scratch, sizeof scratch) == INVAR_CPU_BAD_DTYPE);
  g.x.dtype = 0, g.cols = -1;
  CHECK(invar_cpu_sum(&g, 0, 2, scratch, sizeof scratch) == INVAR_CPU_BAD_SIZE);
  g.cols = 0, g.x.data = NULL;
  CHECK(invar_cpu_sum(&g, 0, 2, scratch, sizeof scratch) == INVAR_CPU_OK);
  g.out.data = NULL;
  CHECK(invar_cpu_sum(&g, 0, 2, scratch, sizeof scratch) == INVAR_CPU_BAD_POINTER);
  CHECK(invar_cpu_softmax(&g, 0, 2, scratch, sizeof scratch) == INVAR_CPU_OK);
  invar_cpu_norm_args n;
  memset(&n, 0, sizeof n);
  n.rows = 1, n.cols = 4;
  n.x.data = values, n.out.data = values + 32, n.x.col = n.out.col = 1;
  CHECK(invar_cpu_rms_norm(&n, 0, 1, scratch, sizeof scratch) == INVAR_CPU_OK);
  CHECK(invar_cpu_add_rms_norm(&n, 0, 1, scratch, sizeof scratch) == INVAR_CPU_BAD_POINTER);
  n.weight.data = values, n.weight.dtype = 4;
  CHECK(invar_cpu_rms_norm(&n, 0, 1, scratch, sizeof scratch) == INVAR_CPU_BAD_DTYPE);
}

int main(int argc, char **argv) {
  if (argc > 1 && !strcmp(argv[1], "levels")) {
    for (int32_t i = 0; i < invar_cpu_isa_count(); i++) {
      if (invar_cpu_isa_available(i)) puts(invar_cpu_isa_name(i));
    }
    return 0;
  }
  if (argc > 1 && !strcmp(argv[1], "current")) {
    const char *name = invar_cpu_isa_current();
    printf("%s %d\n", name ? name : "refused", (int)run_mm(small_mm()));
    return 0;
  }
  if (argc > 1 && !strcmp(argv[1], "version")) {
    puts(invar_cpu_version());
    return 0;
  }
  check_names();
  check_levels();
  check_sizes();
  check_mm_refusals();
  check_row_refusals();
  return failures != 0;
}
