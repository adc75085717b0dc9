// The floating-point control register: one setting while a kernel runs, the
// caller's afterwards. Use it only around calls into another translation unit: a
// compiler may move its own arithmetic over it.
#pragma once

#include <stdint.h>

#if defined(__x86_64__)
#include <xmmintrin.h>
#elif !defined(__aarch64__)
#error "say here how this architecture sets rounding and denormals"
#endif

namespace {

#if defined(__x86_64__)
class fp_state {
 public:
  // All exceptions masked, round to nearest, FTZ = DAZ = 0. Writing the register
  // costs as much as summing a short row, so it is written only to change it.
  fp_state() : found_(_mm_getcsr()) {
    if ((found_ & ~kFlags) != kDefault) _mm_setcsr(kDefault);
  }
  ~fp_state() {
    if (_mm_getcsr() != found_) _mm_setcsr(found_);
  }

 private:
  static constexpr unsigned kDefault = 0x1f80, kFlags = 0x3f;  // flags: sticky, no effect
  unsigned found_;
};
#else
class fp_state {
 public:
  // FPCR = 0: round to nearest, FZ = FZ16 = DN = AHP = 0, no traps.
  fp_state() {
    __asm__ volatile("mrs %0, fpcr" : "=r"(control_));
    __asm__ volatile("mrs %0, fpsr" : "=r"(status_));
    __asm__ volatile("msr fpcr, %0" : : "r"(uint64_t(0)) : "memory");
  }
  ~fp_state() {
    __asm__ volatile("msr fpcr, %0" : : "r"(control_) : "memory");
    __asm__ volatile("msr fpsr, %0" : : "r"(status_) : "memory");
  }

 private:
  uint64_t control_, status_;
};
#endif

}  // namespace
