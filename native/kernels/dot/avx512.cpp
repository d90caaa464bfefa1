// dot for AVX-512F.
#include "kernels/dot/dot.hpp"

#if defined(__x86_64__) || defined(_M_X64)
#include <immintrin.h>

namespace finch::avx512 {
namespace {

constexpr size_t kLanes = 16;

// _mm512_reduce_add_ps, _mm512_extractf32x8_ps and _mm512_castps512_ps256 make gcc 12 warn of uninitialised values; the
// zero-masking forms do not.
inline float sum_lanes(__m512 a0, __m512 a1, __m512 a2, __m512 a3) {
  const __m512 s = _mm512_add_ps(_mm512_add_ps(a0, a1), _mm512_add_ps(a2, a3));
  const __m256 u = _mm256_add_ps(_mm512_maskz_extractf32x8_ps(0xFF, s, 0), _mm512_maskz_extractf32x8_ps(0xFF, s, 1));
  __m128 t = _mm_add_ps(_mm256_castps256_ps128(u), _mm256_extractf128_ps(u, 1));
  t = _mm_add_ps(t, _mm_movehl_ps(t, t));
  t = _mm_add_ss(t, _mm_movehdup_ps(t));
  return _mm_cvtss_f32(t);
}

}  // namespace

// Unrolled by request: at -O2 alone gcc keeps the accumulators in memory.
float dot(const float* a, const float* b, size_t d) {
  __m512 sum[4];
#pragma GCC unroll 4
  for (size_t j = 0; j < 4; ++j) sum[j] = _mm512_setzero_ps();
  size_t i = 0;
  for (; i + 4 * kLanes <= d; i += 4 * kLanes) {
#pragma GCC unroll 4
    for (size_t j = 0; j < 4; ++j) {
      sum[j] = _mm512_fmadd_ps(_mm512_loadu_ps(a + i + j * kLanes), _mm512_loadu_ps(b + i + j * kLanes), sum[j]);
    }
  }
#pragma GCC unroll 4
  for (size_t j = 0; j < 4; ++j) {
    if (i >= d) break;
    const size_t lanes = d - i < kLanes ? d - i : kLanes;
    // Masked loads neither read nor fault beyond the operands.
    const __mmask16 mask = static_cast<__mmask16>(0xFFFFu >> (kLanes - lanes));
    sum[j] = _mm512_fmadd_ps(_mm512_maskz_loadu_ps(mask, a + i), _mm512_maskz_loadu_ps(mask, b + i), sum[j]);
    i += lanes;
  }
  return sum_lanes(sum[0], sum[1], sum[2], sum[3]);
}

}  // namespace finch::avx512
#endif
