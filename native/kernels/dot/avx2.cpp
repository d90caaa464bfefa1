// dot for AVX2 + FMA.
#include "kernels/dot/dot.hpp"

#if defined(__x86_64__) || defined(_M_X64)
#include <immintrin.h>

#include <cstdint>

namespace finch::avx2 {
namespace {

constexpr size_t kLanes = 8;

// Loading 8 words from kMask + 8 - n gives n lanes of ones.
alignas(64) constexpr int32_t kMask[16] = {-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0};

inline float sum_lanes(__m256 a0, __m256 a1, __m256 a2, __m256 a3) {
  const __m256 s = _mm256_add_ps(_mm256_add_ps(a0, a1), _mm256_add_ps(a2, a3));
  __m128 t = _mm_add_ps(_mm256_castps256_ps128(s), _mm256_extractf128_ps(s, 1));
  t = _mm_add_ps(t, _mm_movehl_ps(t, t));
  t = _mm_add_ss(t, _mm_movehdup_ps(t));
  return _mm_cvtss_f32(t);
}

}  // namespace

// Unrolled by request: at -O2 alone gcc keeps the accumulators in memory.
float dot(const float* a, const float* b, size_t d) {
  __m256 sum[4];
#pragma GCC unroll 4
  for (size_t j = 0; j < 4; ++j) sum[j] = _mm256_setzero_ps();
  size_t i = 0;
  for (; i + 4 * kLanes <= d; i += 4 * kLanes) {
#pragma GCC unroll 4
    for (size_t j = 0; j < 4; ++j) {
      sum[j] = _mm256_fmadd_ps(_mm256_loadu_ps(a + i + j * kLanes), _mm256_loadu_ps(b + i + j * kLanes), sum[j]);
    }
  }
#pragma GCC unroll 4
  for (size_t j = 0; j < 4; ++j) {
    if (i >= d) break;
    const size_t lanes = d - i < kLanes ? d - i : kLanes;
    // Masked loads neither read nor fault beyond the operands.
    const __m256i mask = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(kMask + kLanes - lanes));
    sum[j] = _mm256_fmadd_ps(_mm256_maskload_ps(a + i, mask), _mm256_maskload_ps(b + i, mask), sum[j]);
    i += lanes;
  }
  return sum_lanes(sum[0], sum[1], sum[2], sum[3]);
}

}  // namespace finch::avx2
#endif
