#if defined(__x86_64__) || defined(_M_X64)

#include <immintrin.h>

#include <initializer_list>

#include "kernels/bandit/bandit.hpp"

namespace finch::avx512 {
namespace {

constexpr size_t kWidth = 16;
constexpr size_t kLanes = 2 * kWidth;

inline __mmask16 mask_of(size_t left) { return static_cast<__mmask16>(left >= kWidth ? 0xffffu : (1u << left) - 1u); }

// Masked extractions, since gcc 12 warns falsely about the plain ones.
inline float fold(__m512 low, __m512 high) {
  const __m512 s = _mm512_add_ps(low, high);
  const __m256 h = _mm256_add_ps(_mm512_maskz_extractf32x8_ps(0xff, s, 0), _mm512_maskz_extractf32x8_ps(0xff, s, 1));
  __m128 t = _mm_add_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
  t = _mm_add_ps(t, _mm_movehl_ps(t, t));
  return _mm_cvtss_f32(_mm_add_ss(t, _mm_movehdup_ps(t)));
}

struct Sums {
  __m512 mean0 = _mm512_setzero_ps(), mean1 = mean0, variance0 = mean0, variance1 = mean0;
};

inline void step(__m512 b, __m512 inverse_a, __m512 x, __m512* mean, __m512* variance) {
  const __m512 t = _mm512_mul_ps(x, inverse_a);
  *mean = _mm512_fmadd_ps(b, t, *mean);
  *variance = _mm512_fmadd_ps(x, t, *variance);
}

// One chain of additions waits for itself: two arms at a time keep the units busy, and x is read once for both.
template <size_t kArms>
inline void score(const float* const* arms, size_t stride, const float* x, size_t d, float* means, float* variances) {
  Sums sums[kArms];
  size_t i = 0;
  for (; i + kLanes <= d; i += kLanes) {
    const __m512 x0 = _mm512_loadu_ps(x + i);
    const __m512 x1 = _mm512_loadu_ps(x + i + kWidth);
    for (size_t k = 0; k < kArms; ++k) {
      const float* b = arms[k] + stride + i;
      const float* inverse_a = b + stride;
      step(_mm512_loadu_ps(b), _mm512_loadu_ps(inverse_a), x0, &sums[k].mean0, &sums[k].variance0);
      step(_mm512_loadu_ps(b + kWidth), _mm512_loadu_ps(inverse_a + kWidth), x1, &sums[k].mean1, &sums[k].variance1);
    }
  }
  if (i < d) {
    const __mmask16 mask = mask_of(d - i);
    const __m512 x0 = _mm512_maskz_loadu_ps(mask, x + i);
    for (size_t k = 0; k < kArms; ++k) {
      const float* b = arms[k] + stride + i;
      step(_mm512_maskz_loadu_ps(mask, b), _mm512_maskz_loadu_ps(mask, b + stride), x0, &sums[k].mean0,
           &sums[k].variance0);
    }
    i += kWidth;
  }
  if (i < d) {
    const __mmask16 mask = mask_of(d - i);
    const __m512 x1 = _mm512_maskz_loadu_ps(mask, x + i);
    for (size_t k = 0; k < kArms; ++k) {
      const float* b = arms[k] + stride + i;
      step(_mm512_maskz_loadu_ps(mask, b), _mm512_maskz_loadu_ps(mask, b + stride), x1, &sums[k].mean1,
           &sums[k].variance1);
    }
  }
  for (size_t k = 0; k < kArms; ++k) {
    means[k] = fold(sums[k].mean0, sums[k].mean1);
    variances[k] = fold(sums[k].variance0, sums[k].variance1);
  }
}

// Two sums at a time, for the same reason.
template <size_t kSums>
inline void dots_of(const float* const* sums, const float* x, size_t d, float* dots) {
  __m512 low[kSums];
  __m512 high[kSums];
  for (size_t k = 0; k < kSums; ++k) low[k] = high[k] = _mm512_setzero_ps();
  size_t i = 0;
  for (; i + kLanes <= d; i += kLanes) {
    const __m512 x0 = _mm512_loadu_ps(x + i);
    const __m512 x1 = _mm512_loadu_ps(x + i + kWidth);
    for (size_t k = 0; k < kSums; ++k) {
      low[k] = _mm512_fmadd_ps(_mm512_loadu_ps(sums[k] + i), x0, low[k]);
      high[k] = _mm512_fmadd_ps(_mm512_loadu_ps(sums[k] + i + kWidth), x1, high[k]);
    }
  }
  for (__m512* lanes : {low, high}) {
    if (i >= d) break;
    const __mmask16 mask = mask_of(d - i);
    const __m512 v = _mm512_maskz_loadu_ps(mask, x + i);
    for (size_t k = 0; k < kSums; ++k) {
      lanes[k] = _mm512_fmadd_ps(_mm512_maskz_loadu_ps(mask, sums[k] + i), v, lanes[k]);
    }
    i += kWidth;
  }
  for (size_t k = 0; k < kSums; ++k) dots[k] = fold(low[k], high[k]);
}

}  // namespace

void arm_scores(const float* const* arms, size_t stride, size_t count, const float* x, size_t d, float* means,
                float* variances) {
  size_t k = 0;
  for (; k + 2 <= count; k += 2) score<2>(arms + k, stride, x, d, means + k, variances + k);
  if (k < count) score<1>(arms + k, stride, x, d, means + k, variances + k);
}

void context_dots(const float* const* sums, size_t count, const float* x, size_t d, float* dots) {
  size_t k = 0;
  for (; k + 2 <= count; k += 2) dots_of<2>(sums + k, x, d, dots + k);
  if (k < count) dots_of<1>(sums + k, x, d, dots + k);
}

// By 8: two divisions of this width take less time than one of 16.
void arm_invert(float* arm, size_t stride, size_t d) {
  constexpr size_t kHalf = kWidth / 2;
  float* inverse_a = arm + 2 * stride;
  const __m256 one = _mm256_set1_ps(1.0f);
  size_t i = 0;
  for (; i + kHalf <= d; i += kHalf) _mm256_storeu_ps(inverse_a + i, _mm256_div_ps(one, _mm256_loadu_ps(arm + i)));
  if (i < d) {
    const auto mask = static_cast<__mmask8>((1u << (d - i)) - 1u);
    _mm256_mask_storeu_ps(inverse_a + i, mask, _mm256_div_ps(one, _mm256_mask_loadu_ps(one, mask, arm + i)));
  }
}

void arm_update(float* arm, size_t stride, const float* x, size_t d, float gamma, float floor, float reward) {
  const __m512 gammas = _mm512_set1_ps(gamma);
  const __m512 floors = _mm512_set1_ps(floor);
  const __m512 rewards = _mm512_set1_ps(reward);
  const __m512 smallest = _mm512_set1_ps(kSmallestB);
  float* b = arm + stride;
  const auto next_a = [&](__m512 a, __m512 v) { return _mm512_fmadd_ps(gammas, a, _mm512_fmadd_ps(v, v, floors)); };
  const auto next_b = [&](__m512 old, __m512 v) {
    return _mm512_fmadd_ps(gammas, old, _mm512_fmadd_ps(rewards, v, smallest));
  };
  size_t i = 0;
  // Four loads before four stores: more misses of a cold arm overlap.
  for (; i + kLanes <= d; i += kLanes) {
    const __m512 v0 = _mm512_loadu_ps(x + i);
    const __m512 v1 = _mm512_loadu_ps(x + i + kWidth);
    const __m512 a0 = next_a(_mm512_loadu_ps(arm + i), v0);
    const __m512 a1 = next_a(_mm512_loadu_ps(arm + i + kWidth), v1);
    const __m512 b0 = next_b(_mm512_loadu_ps(b + i), v0);
    const __m512 b1 = next_b(_mm512_loadu_ps(b + i + kWidth), v1);
    _mm512_storeu_ps(arm + i, a0);
    _mm512_storeu_ps(arm + i + kWidth, a1);
    _mm512_storeu_ps(b + i, b0);
    _mm512_storeu_ps(b + i + kWidth, b1);
  }
  for (; i + kWidth <= d; i += kWidth) {
    const __m512 v = _mm512_loadu_ps(x + i);
    _mm512_storeu_ps(arm + i, next_a(_mm512_loadu_ps(arm + i), v));
    _mm512_storeu_ps(b + i, next_b(_mm512_loadu_ps(b + i), v));
  }
  if (i < d) {
    const __mmask16 mask = mask_of(d - i);
    const __m512 v = _mm512_maskz_loadu_ps(mask, x + i);
    _mm512_mask_storeu_ps(arm + i, mask, next_a(_mm512_maskz_loadu_ps(mask, arm + i), v));
    _mm512_mask_storeu_ps(b + i, mask, next_b(_mm512_maskz_loadu_ps(mask, b + i), v));
  }
}

}  // namespace finch::avx512

#endif  // x86-64
