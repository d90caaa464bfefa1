#include <immintrin.h>

#include "limits.hpp"

// One multiply-and-add into sum n. Not the intrinsic, and not an array: gcc 12 copies such sums to the stack and back.
#define FINCH_ADD(n) asm("vpdpbusd %2, %1, %0" : "+v"(s##n) : "v"(factor), "v"(term))

namespace finch::bench {

double avx512_peak_i8(size_t rounds, float* sink) {
  const __m512i factor = _mm512_set1_epi8(3);
  const __m512i term = _mm512_set1_epi8(-5);
  __m512i s0 = factor, s1 = factor, s2 = factor, s3 = factor, s4 = factor, s5 = factor, s6 = factor, s7 = factor;
  __m512i s8 = term, s9 = term, s10 = term, s11 = term, s12 = term, s13 = term, s14 = term, s15 = term;
  for (size_t round = 0; round < rounds; ++round) {
    FINCH_ADD(0);
    FINCH_ADD(1);
    FINCH_ADD(2);
    FINCH_ADD(3);
    FINCH_ADD(4);
    FINCH_ADD(5);
    FINCH_ADD(6);
    FINCH_ADD(7);
    FINCH_ADD(8);
    FINCH_ADD(9);
    FINCH_ADD(10);
    FINCH_ADD(11);
    FINCH_ADD(12);
    FINCH_ADD(13);
    FINCH_ADD(14);
    FINCH_ADD(15);
  }
  const __m512i low = _mm512_add_epi32(_mm512_add_epi32(_mm512_add_epi32(s0, s1), _mm512_add_epi32(s2, s3)),
                                       _mm512_add_epi32(_mm512_add_epi32(s4, s5), _mm512_add_epi32(s6, s7)));
  const __m512i high = _mm512_add_epi32(_mm512_add_epi32(_mm512_add_epi32(s8, s9), _mm512_add_epi32(s10, s11)),
                                        _mm512_add_epi32(_mm512_add_epi32(s12, s13), _mm512_add_epi32(s14, s15)));
  _mm512_storeu_ps(sink, _mm512_cvtepi32_ps(_mm512_add_epi32(low, high)));
  return 16.0 * 64 * 2;
}

}  // namespace finch::bench
