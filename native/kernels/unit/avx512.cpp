#if defined(__x86_64__) || defined(_M_X64)

#include <immintrin.h>

#include "kernels/unit/unit.hpp"

namespace finch::avx512 {
namespace {

constexpr size_t kWidth = 8;
constexpr size_t kRegisters = 4;
constexpr size_t kLanes = kWidth * kRegisters;

inline __mmask8 mask_of(size_t left) { return static_cast<__mmask8>(left >= kWidth ? 0xffu : (1u << left) - 1u); }

inline __m512d wide(__m256 v) { return _mm512_maskz_cvtps_pd(0xff, v); }

inline double fold(const __m512d (&s)[kRegisters]) {
  const __m512d h = _mm512_add_pd(_mm512_add_pd(s[0], s[2]), _mm512_add_pd(s[1], s[3]));
  const __m256d q = _mm256_add_pd(_mm512_maskz_extractf64x4_pd(0xf, h, 0), _mm512_maskz_extractf64x4_pd(0xf, h, 1));
  const __m128d t = _mm_add_pd(_mm256_castpd256_pd128(q), _mm256_extractf128_pd(q, 1));
  return _mm_cvtsd_f64(_mm_add_sd(t, _mm_unpackhi_pd(t, t)));
}

}  // namespace

double square_sum(const float* x, size_t d) {
  const __m512d zero = _mm512_setzero_pd();
  __m512d sums[kRegisters] = {zero, zero, zero, zero};
  size_t i = 0;
  for (; i + kLanes <= d; i += kLanes) {
    for (size_t r = 0; r < kRegisters; ++r) {
      const __m512d v = wide(_mm256_loadu_ps(x + i + r * kWidth));
      sums[r] = _mm512_fmadd_pd(v, v, sums[r]);
    }
  }
  for (size_t r = 0; r < kRegisters && i < d; ++r, i += kWidth) {
    const __m512d v = wide(_mm256_maskz_loadu_ps(mask_of(d - i), x + i));
    sums[r] = _mm512_fmadd_pd(v, v, sums[r]);
  }
  return fold(sums);
}

void scale(const float* x, double factor, size_t d, float* out) {
  const __m512d factors = _mm512_set1_pd(factor);
  size_t i = 0;
  for (; i + kWidth <= d; i += kWidth) {
    const __m512d v = _mm512_mul_pd(wide(_mm256_loadu_ps(x + i)), factors);
    _mm256_storeu_ps(out + i, _mm512_maskz_cvtpd_ps(0xff, v));
  }
  if (i < d) {
    const __mmask8 mask = mask_of(d - i);
    const __m512d v = _mm512_mul_pd(wide(_mm256_maskz_loadu_ps(mask, x + i)), factors);
    _mm256_mask_storeu_ps(out + i, mask, _mm512_maskz_cvtpd_ps(0xff, v));
  }
}

}  // namespace finch::avx512

#endif  // x86-64
