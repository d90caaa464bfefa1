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

// R rows against one query. Each row has accumulators of its own, so a row's bits do not depend on R. Unrolled by
// request: at -O2 alone gcc keeps the accumulators in memory.
template <size_t R>
inline void rows_block(const float* query, const float* rows, size_t d, float* out) {
  __m256 acc[R][4];
#pragma GCC unroll 4
  for (size_t r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (size_t j = 0; j < 4; ++j) acc[r][j] = _mm256_setzero_ps();
  }
  size_t i = 0;
  for (; i + 4 * kLanes <= d; i += 4 * kLanes) {
#pragma GCC unroll 4
    for (size_t j = 0; j < 4; ++j) {
      const __m256 q = _mm256_loadu_ps(query + i + j * kLanes);
#pragma GCC unroll 4
      for (size_t r = 0; r < R; ++r) {
        acc[r][j] = _mm256_fmadd_ps(q, _mm256_loadu_ps(rows + r * d + i + j * kLanes), acc[r][j]);
      }
    }
  }
  size_t left = d - i;
#pragma GCC unroll 4
  for (size_t j = 0; j < 4; ++j) {
    if (left >= kLanes) {
      const __m256 q = _mm256_loadu_ps(query + i);
#pragma GCC unroll 4
      for (size_t r = 0; r < R; ++r) acc[r][j] = _mm256_fmadd_ps(q, _mm256_loadu_ps(rows + r * d + i), acc[r][j]);
      i += kLanes;
      left -= kLanes;
    } else if (left > 0) {
      const __m256i mask = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(kMask + kLanes - left));
      const __m256 q = _mm256_maskload_ps(query + i, mask);
#pragma GCC unroll 4
      for (size_t r = 0; r < R; ++r)
        acc[r][j] = _mm256_fmadd_ps(q, _mm256_maskload_ps(rows + r * d + i, mask), acc[r][j]);
      left = 0;
    }
  }
#pragma GCC unroll 4
  for (size_t r = 0; r < R; ++r) out[r] = sum_lanes(acc[r][0], acc[r][1], acc[r][2], acc[r][3]);
}

}  // namespace

float dot(const float* a, const float* b, size_t d) {
  float out;
  rows_block<1>(a, b, d, &out);
  return out;
}

void dot_rows(const float* query, const float* rows, size_t count, size_t d, float* out) {
  size_t r = 0;
  for (; r + 2 <= count; r += 2) rows_block<2>(query, rows + r * d, d, out + r);
  if (r < count) rows_block<1>(query, rows + r * d, d, out + r);
}

}  // namespace finch::avx2
#endif
