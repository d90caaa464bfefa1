#if defined(__x86_64__) || defined(_M_X64)

#include <immintrin.h>

#include "kernels/bandit/bandit.hpp"

namespace finch::avx512 {
namespace {

constexpr size_t kWidth = 16;
constexpr size_t kLanes = 2 * kWidth;

inline __mmask16 mask_of(size_t left) { return static_cast<__mmask16>(left >= kWidth ? 0xffffu : (1u << left) - 1u); }

// Masked extractions (and, below, a masked minimum), since gcc 12 warns falsely about the plain ones.
inline float fold(__m512 low, __m512 high) {
  const __m512 s = _mm512_add_ps(low, high);
  const __m256 h = _mm256_add_ps(_mm512_maskz_extractf32x8_ps(0xff, s, 0), _mm512_maskz_extractf32x8_ps(0xff, s, 1));
  __m128 t = _mm_add_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
  t = _mm_add_ps(t, _mm_movehl_ps(t, t));
  return _mm_cvtss_f32(_mm_add_ss(t, _mm_movehdup_ps(t)));
}

inline void score_step(__m512 inverse, __m512 b, __m512 x, __m512* mean, __m512* variance) {
  const __m512 t = _mm512_mul_ps(x, inverse);
  *mean = _mm512_add_ps(*mean, _mm512_mul_ps(b, t));
  *variance = _mm512_add_ps(*variance, _mm512_mul_ps(x, t));
}

struct Constants {
  __m512 gamma, floor, reward, largest;
};

inline __m512 next_inverse(__m512 inverse, __m512 x, const Constants& k) {
  const __m512 grown = _mm512_mul_ps(_mm512_add_ps(_mm512_mul_ps(x, x), k.floor), inverse);
  return _mm512_maskz_min_ps(0xffff, _mm512_div_ps(inverse, _mm512_add_ps(k.gamma, grown)), k.largest);
}

inline __m512 next_b(__m512 b, __m512 x, const Constants& k) {
  return _mm512_add_ps(_mm512_mul_ps(k.gamma, b), _mm512_mul_ps(k.reward, x));
}

}  // namespace

void arm_score(const float* inverse_a, const float* b, const float* x, size_t d, float* mean, float* variance) {
  __m512 mean0 = _mm512_setzero_ps(), mean1 = mean0, variance0 = mean0, variance1 = mean0;
  size_t i = 0;
  for (; i + kLanes <= d; i += kLanes) {
    score_step(_mm512_loadu_ps(inverse_a + i), _mm512_loadu_ps(b + i), _mm512_loadu_ps(x + i), &mean0, &variance0);
    score_step(_mm512_loadu_ps(inverse_a + i + kWidth), _mm512_loadu_ps(b + i + kWidth),
               _mm512_loadu_ps(x + i + kWidth), &mean1, &variance1);
  }
  if (i < d) {
    const __mmask16 mask = mask_of(d - i);
    score_step(_mm512_maskz_loadu_ps(mask, inverse_a + i), _mm512_maskz_loadu_ps(mask, b + i),
               _mm512_maskz_loadu_ps(mask, x + i), &mean0, &variance0);
    i += kWidth;
  }
  if (i < d) {
    const __mmask16 mask = mask_of(d - i);
    score_step(_mm512_maskz_loadu_ps(mask, inverse_a + i), _mm512_maskz_loadu_ps(mask, b + i),
               _mm512_maskz_loadu_ps(mask, x + i), &mean1, &variance1);
  }
  *mean = fold(mean0, mean1);
  *variance = fold(variance0, variance1);
}

void arm_update(float* inverse_a, float* b, const float* x, size_t d, float gamma, float floor, float reward) {
  const Constants k = {_mm512_set1_ps(gamma), _mm512_set1_ps(floor), _mm512_set1_ps(reward),
                       _mm512_set1_ps(kLargestInverse)};
  for (size_t i = 0; i < d; i += kWidth) {
    const __mmask16 mask = mask_of(d - i);
    const __m512 v = _mm512_maskz_loadu_ps(mask, x + i);
    _mm512_mask_storeu_ps(inverse_a + i, mask, next_inverse(_mm512_maskz_loadu_ps(mask, inverse_a + i), v, k));
    _mm512_mask_storeu_ps(b + i, mask, next_b(_mm512_maskz_loadu_ps(mask, b + i), v, k));
  }
}

}  // namespace finch::avx512

#endif  // x86-64
