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

inline void step(__m256 b, __m256 inverse_a, __m256 x, __m256* mean, __m256* variance) {
  const __m256 t = _mm256_mul_ps(x, inverse_a);
  *mean = _mm256_fmadd_ps(b, t, *mean);
  *variance = _mm256_fmadd_ps(x, t, *variance);
}

void score(const float* b, const float* inverse_a, const float* x, size_t d, float* mean, float* variance) {
  const __m256 zero = _mm256_setzero_ps();
  __m256 means[kRegisters] = {zero, zero, zero, zero};
  __m256 variances[kRegisters] = {zero, zero, zero, zero};
  size_t i = 0;
  for (; i + kLanes <= d; i += kLanes) {
    for (size_t r = 0; r < kRegisters; ++r) {
      const size_t at = i + r * kWidth;
      step(_mm256_loadu_ps(b + at), _mm256_loadu_ps(inverse_a + at), _mm256_loadu_ps(x + at), &means[r], &variances[r]);
    }
  }
  for (size_t r = 0; r < kRegisters && i < d; ++r, i += kWidth) {
    const __m256i mask = mask_of(d - i < kWidth ? d - i : kWidth);
    step(_mm256_maskload_ps(b + i, mask), _mm256_maskload_ps(inverse_a + i, mask), _mm256_maskload_ps(x + i, mask),
         &means[r], &variances[r]);
  }
  *mean = fold(means);
  *variance = fold(variances);
}

float dot(const float* sum, const float* x, size_t d) {
  const __m256 zero = _mm256_setzero_ps();
  __m256 lanes[kRegisters] = {zero, zero, zero, zero};
  size_t i = 0;
  for (; i + kLanes <= d; i += kLanes) {
    for (size_t r = 0; r < kRegisters; ++r) {
      const size_t at = i + r * kWidth;
      lanes[r] = _mm256_fmadd_ps(_mm256_loadu_ps(sum + at), _mm256_loadu_ps(x + at), lanes[r]);
    }
  }
  for (size_t r = 0; r < kRegisters && i < d; ++r, i += kWidth) {
    const __m256i mask = mask_of(d - i < kWidth ? d - i : kWidth);
    lanes[r] = _mm256_fmadd_ps(_mm256_maskload_ps(sum + i, mask), _mm256_maskload_ps(x + i, mask), lanes[r]);
  }
  return fold(lanes);
}

}  // namespace

void arm_scores(const float* const* arms, size_t stride, size_t count, const float* x, size_t d, float* means,
                float* variances) {
  for (size_t k = 0; k < count; ++k) {
    score(arms[k] + stride, arms[k] + 2 * stride, x, d, &means[k], &variances[k]);
  }
}

void context_dots(const float* const* sums, size_t count, const float* x, size_t d, float* dots) {
  for (size_t k = 0; k < count; ++k) dots[k] = dot(sums[k], x, d);
}

void arm_invert(float* arm, size_t stride, size_t d) {
  float* inverse_a = arm + 2 * stride;
  const __m256 one = _mm256_set1_ps(1.0f);
  size_t i = 0;
  for (; i + kWidth <= d; i += kWidth) _mm256_storeu_ps(inverse_a + i, _mm256_div_ps(one, _mm256_loadu_ps(arm + i)));
  if (i < d) {
    const __m256i mask = mask_of(d - i);
    const __m256 a = _mm256_blendv_ps(one, _mm256_maskload_ps(arm + i, mask), _mm256_castsi256_ps(mask));
    _mm256_maskstore_ps(inverse_a + i, mask, _mm256_div_ps(one, a));
  }
}

void arm_update(float* arm, size_t stride, const float* x, size_t d, float gamma, float floor, float reward) {
  const __m256 gammas = _mm256_set1_ps(gamma);
  const __m256 floors = _mm256_set1_ps(floor);
  const __m256 rewards = _mm256_set1_ps(reward);
  const __m256 smallest = _mm256_set1_ps(kSmallestB);
  float* b = arm + stride;
  const auto next_a = [&](__m256 a, __m256 v) { return _mm256_fmadd_ps(gammas, a, _mm256_fmadd_ps(v, v, floors)); };
  const auto next_b = [&](__m256 old, __m256 v) {
    return _mm256_fmadd_ps(gammas, old, _mm256_fmadd_ps(rewards, v, smallest));
  };
  size_t i = 0;
  for (; i + kWidth <= d; i += kWidth) {
    const __m256 v = _mm256_loadu_ps(x + i);
    _mm256_storeu_ps(arm + i, next_a(_mm256_loadu_ps(arm + i), v));
    _mm256_storeu_ps(b + i, next_b(_mm256_loadu_ps(b + i), v));
  }
  if (i < d) {
    const __m256i mask = mask_of(d - i);
    const __m256 v = _mm256_maskload_ps(x + i, mask);
    _mm256_maskstore_ps(arm + i, mask, next_a(_mm256_maskload_ps(arm + i, mask), v));
    _mm256_maskstore_ps(b + i, mask, next_b(_mm256_maskload_ps(b + i, mask), v));
  }
}

}  // namespace finch::avx2

#endif  // x86-64
