#if defined(__x86_64__) || defined(_M_X64)

#include <immintrin.h>

#include "kernels/unit/unit.hpp"

namespace finch::avx2 {
namespace {

constexpr size_t kWidth = 4;
constexpr size_t kRegisters = 8;
constexpr size_t kLanes = kWidth * kRegisters;

alignas(32) constexpr int kMask[8] = {-1, -1, -1, -1, 0, 0, 0, 0};

inline __m128i mask_of(size_t left) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(kMask + kWidth - (left < kWidth ? left : kWidth)));
}

}  // namespace

double square_sum(const float* x, size_t d) {
  __m256d sums[kRegisters];
  for (__m256d& sum : sums) sum = _mm256_setzero_pd();
  size_t i = 0;
  for (; i + kLanes <= d; i += kLanes) {
    for (size_t r = 0; r < kRegisters; ++r) {
      const __m256d v = _mm256_cvtps_pd(_mm_loadu_ps(x + i + r * kWidth));
      sums[r] = _mm256_fmadd_pd(v, v, sums[r]);
    }
  }
  for (size_t r = 0; r < kRegisters && i < d; ++r, i += kWidth) {
    const __m256d v = _mm256_cvtps_pd(_mm_maskload_ps(x + i, mask_of(d - i)));
    sums[r] = _mm256_fmadd_pd(v, v, sums[r]);
  }
  for (size_t r = 0; r < 4; ++r) sums[r] = _mm256_add_pd(sums[r], sums[r + 4]);
  const __m256d h = _mm256_add_pd(_mm256_add_pd(sums[0], sums[2]), _mm256_add_pd(sums[1], sums[3]));
  const __m128d t = _mm_add_pd(_mm256_castpd256_pd128(h), _mm256_extractf128_pd(h, 1));
  return _mm_cvtsd_f64(_mm_add_sd(t, _mm_unpackhi_pd(t, t)));
}

void scale(const float* x, double factor, size_t d, float* out) {
  const __m256d factors = _mm256_set1_pd(factor);
  size_t i = 0;
  for (; i + kWidth <= d; i += kWidth) {
    _mm_storeu_ps(out + i, _mm256_cvtpd_ps(_mm256_mul_pd(_mm256_cvtps_pd(_mm_loadu_ps(x + i)), factors)));
  }
  if (i < d) {
    const __m128i mask = mask_of(d - i);
    _mm_maskstore_ps(out + i, mask,
                     _mm256_cvtpd_ps(_mm256_mul_pd(_mm256_cvtps_pd(_mm_maskload_ps(x + i, mask)), factors)));
  }
}

}  // namespace finch::avx2

#endif  // x86-64
