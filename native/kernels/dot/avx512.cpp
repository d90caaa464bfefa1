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

// R rows against one query. Each row has accumulators of its own, so a row's bits do not depend on R. Unrolled by
// request: at -O2 alone gcc keeps the accumulators in memory.
template <size_t R>
inline void rows_block(const float* query, const float* rows, size_t d, float* out) {
  __m512 acc[R][4];
#pragma GCC unroll 4
  for (size_t r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (size_t j = 0; j < 4; ++j) acc[r][j] = _mm512_setzero_ps();
  }
  size_t i = 0;
  for (; i + 4 * kLanes <= d; i += 4 * kLanes) {
#pragma GCC unroll 4
    for (size_t j = 0; j < 4; ++j) {
      const __m512 q = _mm512_loadu_ps(query + i + j * kLanes);
#pragma GCC unroll 4
      for (size_t r = 0; r < R; ++r) {
        acc[r][j] = _mm512_fmadd_ps(q, _mm512_loadu_ps(rows + r * d + i + j * kLanes), acc[r][j]);
      }
    }
  }
  size_t left = d - i;
#pragma GCC unroll 4
  for (size_t j = 0; j < 4; ++j) {
    if (left == 0) break;
    const size_t lanes = left < kLanes ? left : kLanes;
    // Masked loads neither read nor fault beyond the row.
    const __mmask16 mask = static_cast<__mmask16>(0xFFFFu >> (kLanes - lanes));
    const __m512 q = _mm512_maskz_loadu_ps(mask, query + i);
#pragma GCC unroll 4
    for (size_t r = 0; r < R; ++r) {
      acc[r][j] = _mm512_fmadd_ps(q, _mm512_maskz_loadu_ps(mask, rows + r * d + i), acc[r][j]);
    }
    i += lanes;
    left -= lanes;
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
  for (; r + 4 <= count; r += 4) rows_block<4>(query, rows + r * d, d, out + r);
  for (; r < count; ++r) rows_block<1>(query, rows + r * d, d, out + r);
}

}  // namespace finch::avx512
#endif
