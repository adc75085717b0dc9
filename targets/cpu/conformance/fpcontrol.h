/* The floating-point control register as a caller sets it: the driver must show that
 * no setting reaches a kernel and that each comes back. */
#ifndef FPCONTROL_H
#define FPCONTROL_H

#include <stdint.h>

#if defined(__x86_64__)
#include <xmmintrin.h>

static uint64_t fp_get(void) { return _mm_getcsr(); }
static void fp_set(uint64_t v) { _mm_setcsr((unsigned)v); }

/* Rounding towards zero, up, down; flush-to-zero, denormals-are-zero; a sticky flag. */
static const uint64_t fp_hostile[] = {0x1f80 | 0x8040 | 0x6000, 0x1f80 | 0x4000 | 0x8000,
                                      0x1f80 | 0x2000 | 0x0040 | 0x20};
#elif defined(__aarch64__)
static uint64_t fp_get(void) {
  uint64_t v;
  __asm__ volatile("mrs %0, fpcr" : "=r"(v));
  return v;
}
static void fp_set(uint64_t v) { __asm__ volatile("msr fpcr, %0" : : "r"(v)); }

/* FZ with round to zero; round up with FZ and DN; round down with AHP. */
static const uint64_t fp_hostile[] = {1u << 24 | 3u << 22, 1u << 24 | 1u << 25 | 1u << 22,
                                      2u << 22 | 1u << 26};
#else
#error "say here how this architecture sets rounding and denormals"
#endif

#endif
