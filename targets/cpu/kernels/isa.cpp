#define INVAR_CPU_BUILD
#include "isa.h"

#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace {

#if defined(__x86_64__)
bool has_f16c() {
  unsigned a, b, c, d;
  return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}

// __builtin_cpu_supports also asks whether the kernel saves the registers.
bool has_avx2() {
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
}

bool has_avx512() {
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
#endif

bool always() { return true; }

struct entry {
  const invar_level *level;
  bool (*available)();
};

const entry kLevels[] = {
    {&invar_level_baseline, always},
#if defined(__x86_64__)
    {&invar_level_avx2, has_avx2},
    {&invar_level_avx512, has_avx512},
#elif defined(__aarch64__)
    {&invar_level_neon, always},
#endif
};
constexpr int32_t kCount = sizeof kLevels / sizeof *kLevels;

constexpr int32_t kUnknown = -1;  // not looked at yet
constexpr int32_t kRefused = -2;
int32_t current = kUnknown;  // index into kLevels; read and written atomically

int32_t index_of(const char *name) {
  for (int32_t i = 0; i < kCount; i++) {
    if (!strcmp(kLevels[i].level->name, name)) return kLevels[i].available() ? i : kRefused;
  }
  return kRefused;
}

int32_t choose() {
  const char *name = getenv("INVAR_CPU_ISA");
  if (name && *name) return index_of(name);
  int32_t best = 0;
  for (int32_t i = 1; i < kCount; i++) {
    if (kLevels[i].available()) best = i;
  }
  return best;
}

// Puts value where *cell is still unknown, and gives what it holds then. Threads that
// come at the same time agree on one answer.
int32_t settle(int32_t *cell, int32_t value) {
  int32_t found = kUnknown;
  bool ours = __atomic_compare_exchange_n(cell, &found, value, false, __ATOMIC_ACQ_REL,
                                          __ATOMIC_ACQUIRE);
  return ours ? value : found;
}

// The environment is read once: a later change must not change the level.
int32_t first_choice() {
  static int32_t first = kUnknown;
  int32_t i = __atomic_load_n(&first, __ATOMIC_ACQUIRE);
  return i != kUnknown ? i : settle(&first, choose());
}

int32_t in_use() {
  int32_t i = __atomic_load_n(&current, __ATOMIC_ACQUIRE);
  return i != kUnknown ? i : settle(&current, first_choice());
}

}  // namespace

const invar_level *invar_level_in_use() {
  int32_t i = in_use();
  return i < 0 ? nullptr : kLevels[i].level;
}

extern "C" {

int32_t invar_cpu_isa_count(void) { return kCount; }

const char *invar_cpu_isa_name(int32_t index) {
  return index < 0 || index >= kCount ? nullptr : kLevels[index].level->name;
}

int32_t invar_cpu_isa_available(int32_t index) {
  return index >= 0 && index < kCount && kLevels[index].available();
}

const char *invar_cpu_isa_current(void) {
  const invar_level *l = invar_level_in_use();
  return l ? l->name : nullptr;
}

int32_t invar_cpu_isa_select(const char *name) {
  int32_t i = name ? index_of(name) : first_choice();
  if (name && i < 0) return INVAR_CPU_BAD_ISA;
  __atomic_store_n(&current, i, __ATOMIC_RELEASE);
  return i < 0 ? INVAR_CPU_BAD_ISA : INVAR_CPU_OK;
}

}  // extern "C"
