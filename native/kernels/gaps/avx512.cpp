#if defined(__x86_64__) || defined(_M_X64)

#include <immintrin.h>

#include "kernels/gaps/gaps.hpp"

namespace finch::avx512 {
namespace {

constexpr size_t kLanes = 16;

// Masked extractions, since gcc 12 warns falsely about the plain ones (-Wmaybe-uninitialized).
inline float fold(__m512 s0, __m512 s1, __m512 s2, __m512 s3) {
  const __m512 s = _mm512_add_ps(_mm512_add_ps(s0, s1), _mm512_add_ps(s2, s3));
  const __m256 h = _mm256_add_ps(_mm512_maskz_extractf32x8_ps(0xff, s, 0), _mm512_maskz_extractf32x8_ps(0xff, s, 1));
  __m128 t = _mm_add_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
  t = _mm_add_ps(t, _mm_movehl_ps(t, t));
  return _mm_cvtss_f32(_mm_add_ss(t, _mm_movehdup_ps(t)));
}

inline void step(__m512 x, __m512 y, __m512* dot, __m512* norm) {
  *dot = _mm512_fmadd_ps(x, y, *dot);
  *norm = _mm512_fmadd_ps(y, y, *norm);
}

}  // namespace

void dot_and_norm(const float* a, const float* b, size_t d, float* dot, float* norm) {
  __m512 p0 = _mm512_setzero_ps(), p1 = p0, p2 = p0, p3 = p0;
  __m512 q0 = p0, q1 = p0, q2 = p0, q3 = p0;
  size_t i = 0;
  for (; i + 4 * kLanes <= d; i += 4 * kLanes) {
    step(_mm512_loadu_ps(a + i), _mm512_loadu_ps(b + i), &p0, &q0);
    step(_mm512_loadu_ps(a + i + 16), _mm512_loadu_ps(b + i + 16), &p1, &q1);
    step(_mm512_loadu_ps(a + i + 32), _mm512_loadu_ps(b + i + 32), &p2, &q2);
    step(_mm512_loadu_ps(a + i + 48), _mm512_loadu_ps(b + i + 48), &p3, &q3);
  }
  for (size_t block = 0; i < d; ++block, i += kLanes) {
    const size_t left = d - i;
    const __mmask16 mask = static_cast<__mmask16>(left >= kLanes ? 0xffffu : (1u << left) - 1u);
    const __m512 x = _mm512_maskz_loadu_ps(mask, a + i);
    const __m512 y = _mm512_maskz_loadu_ps(mask, b + i);
    if (block == 0) step(x, y, &p0, &q0);
    if (block == 1) step(x, y, &p1, &q1);
    if (block == 2) step(x, y, &p2, &q2);
    if (block == 3) step(x, y, &p3, &q3);
  }
  *dot = fold(p0, p1, p2, p3);
  *norm = fold(q0, q1, q2, q3);
}

}  // namespace finch::avx512

#endif  // x86-64
