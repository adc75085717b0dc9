// A correctly rounded float32 fused multiply-add for machines without one.
//
// The product of two floats is exact in double. The sum with c is rounded in double
// to odd (cut off, and the last bit set when something was cut off): 53 bits leave
// more than two bits to spare over any float32, denormal or not, so the rounding to
// float that follows comes out as if the sum had been exact. libm's fmaf is not
// used: its bits would be those of the C library in use, and it is slower.
#pragma once

#include <emmintrin.h>

namespace {

// Two lanes of a*b + c, rounded to odd. Nothing here overflows: an infinite or NaN s
// comes from the operands, its error is NaN, and both comparisons are then false.
inline __m128d fma_to_odd(__m128d a, __m128d b, __m128d c) {
  const __m128d zero = _mm_setzero_pd(), sign = _mm_set1_pd(-0.0);
  __m128d p = _mm_mul_pd(a, b), s = _mm_add_pd(p, c);
  __m128d t = _mm_sub_pd(s, p);
  __m128d error = _mm_add_pd(_mm_sub_pd(p, _mm_sub_pd(s, t)), _mm_sub_pd(c, t));
  error = _mm_xor_pd(error, _mm_and_pd(s, sign));  // above zero: s lies nearer to zero
  __m128i over = _mm_castpd_si128(_mm_cmplt_pd(error, zero));
  __m128i under = _mm_castpd_si128(_mm_cmpgt_pd(error, zero));
  __m128i bits = _mm_add_epi64(_mm_castpd_si128(s), over);  // a step towards zero
  __m128i inexact = _mm_and_si128(_mm_or_si128(over, under), _mm_set1_epi64x(1));
  return _mm_castsi128_pd(_mm_or_si128(bits, inexact));
}

// The long way for four lanes.
__attribute__((noinline)) __m128 slow_fma(__m128 a, __m128 b, __m128 c) {
  __m128d l = fma_to_odd(_mm_cvtps_pd(a), _mm_cvtps_pd(b), _mm_cvtps_pd(c));
  __m128d h = fma_to_odd(_mm_cvtps_pd(_mm_movehl_ps(a, a)), _mm_cvtps_pd(_mm_movehl_ps(b, b)),
                         _mm_cvtps_pd(_mm_movehl_ps(c, c)));
  return _mm_movelh_ps(_mm_cvtpd_ps(l), _mm_cvtpd_ps(h));
}

// A sum rounded in double, then to float, is right unless its double lies on the very
// middle of two floats, or so near zero that a float has fewer bits there.
inline __m128 soft_fma(__m128 a, __m128 b, __m128 c) {
  __m128d l = _mm_add_pd(_mm_mul_pd(_mm_cvtps_pd(a), _mm_cvtps_pd(b)), _mm_cvtps_pd(c));
  __m128d h = _mm_add_pd(
      _mm_mul_pd(_mm_cvtps_pd(_mm_movehl_ps(a, a)), _mm_cvtps_pd(_mm_movehl_ps(b, b))),
      _mm_cvtps_pd(_mm_movehl_ps(c, c)));
  __m128 f = _mm_movelh_ps(_mm_cvtpd_ps(l), _mm_cvtpd_ps(h));
  __m128i low = _mm_castps_si128(
      _mm_shuffle_ps(_mm_castpd_ps(l), _mm_castpd_ps(h), _MM_SHUFFLE(2, 0, 2, 0)));
  __m128i middle = _mm_cmpeq_epi32(_mm_slli_epi32(low, 3), _mm_set1_epi32(int(0x80000000)));
  __m128i size = _mm_and_si128(_mm_castps_si128(f), _mm_set1_epi32(0x7fffffff));
  __m128i tiny = _mm_cmplt_epi32(size, _mm_set1_epi32(0x0d800000));  // 2^-100
  if (!_mm_movemask_epi8(_mm_or_si128(middle, tiny))) return f;
  const __m128d zero = _mm_setzero_pd();  // an exact zero is right as well: padding
  __m128 none = _mm_shuffle_ps(_mm_castpd_ps(_mm_cmpeq_pd(l, zero)),
                               _mm_castpd_ps(_mm_cmpeq_pd(h, zero)), _MM_SHUFFLE(2, 0, 2, 0));
  tiny = _mm_andnot_si128(_mm_castps_si128(none), tiny);
  return _mm_movemask_epi8(_mm_or_si128(middle, tiny)) ? slow_fma(a, b, c) : f;
}

inline float soft_fma1(float a, float b, float c) {
  __m128d d = fma_to_odd(_mm_set_sd(a), _mm_set_sd(b), _mm_set_sd(c));
  return _mm_cvtss_f32(_mm_cvtsd_ss(_mm_setzero_ps(), d));
}

}  // namespace
