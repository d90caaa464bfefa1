#if defined(__x86_64__) || defined(_M_X64)

#include <immintrin.h>

#include "kernels/bandit/bandit.hpp"

namespace finch::avx2 {
namespace {

constexpr size_t kWidth = 8;
constexpr size_t kRegisters = 4;
constexpr size_t kLanes = kWidth * kRegisters;

alignas(64) constexpr int kMask[16] = {-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0};

inline __m256i mask_of(size_t left) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(kMask + kWidth - left));
}

inline float fold(const __m256 (&s)[kRegisters]) {
  const __m256 h = _mm256_add_ps(_mm256_add_ps(s[0], s[2]), _mm256_add_ps(s[1], s[3]));
  __m128 t = _mm_add_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
  t = _mm_add_ps(t, _mm_movehl_ps(t, t));
  return _mm_cvtss_f32(_mm_add_ss(t, _mm_movehdup_ps(t)));
}

inline void score_step(__m256 inverse, __m256 b, __m256 x, __m256* mean, __m256* variance) {
  const __m256 t = _mm256_mul_ps(x, inverse);
  *mean = _mm256_add_ps(*mean, _mm256_mul_ps(b, t));
  *variance = _mm256_add_ps(*variance, _mm256_mul_ps(x, t));
}

struct Constants {
  __m256 gamma, floor, reward, largest;
};

inline __m256 next_inverse(__m256 inverse, __m256 x, const Constants& k) {
  const __m256 grown = _mm256_mul_ps(_mm256_add_ps(_mm256_mul_ps(x, x), k.floor), inverse);
  return _mm256_min_ps(_mm256_div_ps(inverse, _mm256_add_ps(k.gamma, grown)), k.largest);
}

inline __m256 next_b(__m256 b, __m256 x, const Constants& k) {
  return _mm256_add_ps(_mm256_mul_ps(k.gamma, b), _mm256_mul_ps(k.reward, x));
}

}  // namespace

void arm_score(const float* inverse_a, const float* b, const float* x, size_t d, float* mean, float* variance) {
  const __m256 zero = _mm256_setzero_ps();
  __m256 means[kRegisters] = {zero, zero, zero, zero};
  __m256 variances[kRegisters] = {zero, zero, zero, zero};
  size_t i = 0;
  for (; i + kLanes <= d; i += kLanes) {
    for (size_t r = 0; r < kRegisters; ++r) {
      const size_t at = i + r * kWidth;
      score_step(_mm256_loadu_ps(inverse_a + at), _mm256_loadu_ps(b + at), _mm256_loadu_ps(x + at), &means[r],
                 &variances[r]);
    }
  }
  for (size_t r = 0; r < kRegisters && i < d; ++r, i += kWidth) {
    const __m256i mask = mask_of(d - i < kWidth ? d - i : kWidth);
    score_step(_mm256_maskload_ps(inverse_a + i, mask), _mm256_maskload_ps(b + i, mask),
               _mm256_maskload_ps(x + i, mask), &means[r], &variances[r]);
  }
  *mean = fold(means);
  *variance = fold(variances);
}

void arm_update(float* inverse_a, float* b, const float* x, size_t d, float gamma, float floor, float reward) {
  const Constants k = {_mm256_set1_ps(gamma), _mm256_set1_ps(floor), _mm256_set1_ps(reward),
                       _mm256_set1_ps(kLargestInverse)};
  size_t i = 0;
  for (; i + kWidth <= d; i += kWidth) {
    const __m256 v = _mm256_loadu_ps(x + i);
    _mm256_storeu_ps(inverse_a + i, next_inverse(_mm256_loadu_ps(inverse_a + i), v, k));
    _mm256_storeu_ps(b + i, next_b(_mm256_loadu_ps(b + i), v, k));
  }
  if (i < d) {
    const __m256i mask = mask_of(d - i);
    const __m256 v = _mm256_maskload_ps(x + i, mask);
    _mm256_maskstore_ps(inverse_a + i, mask, next_inverse(_mm256_maskload_ps(inverse_a + i, mask), v, k));
    _mm256_maskstore_ps(b + i, mask, next_b(_mm256_maskload_ps(b + i, mask), v, k));
  }
}

}  // namespace finch::avx2

#endif  // x86-64
